"""Read the newest observations of a dataset's head, where runs leave what later ones need to know."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from itertools import islice

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.event_log import records_of_pages

__all__ = ["observations_of_head"]

_AT_ONCE = 200


def observations_of_head(
    instance: dg.DagsterInstance, config: DatasetConfig, limit: int | None = None, since: datetime | None = None
) -> Iterator[tuple[float, dg.AssetObservation]]:
    """Yield the newest observations of the head, the newest first, each with its time in seconds since 1970.

    At most `limit` are read, all of them if it is None. `since` leaves out older ones.
    """
    head = DatasetNames(config.name).head
    wanted = dg.AssetRecordsFilter(head, after_timestamp=since.timestamp() if since else None)
    at_once = _AT_ONCE if limit is None else min(_AT_ONCE, limit)
    for record in islice(records_of_pages(partial(instance.fetch_observations, wanted, limit=at_once)), limit):
        if record.asset_observation is not None:
            yield record.timestamp, record.asset_observation
