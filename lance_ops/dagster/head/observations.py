"""Read the newest observations of a dataset's head, where runs leave what later ones need to know."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames

__all__ = ["observations_of_head"]


def observations_of_head(
    instance: dg.DagsterInstance, config: DatasetConfig, limit: int, since: datetime | None = None
) -> Iterator[tuple[float, dg.AssetObservation]]:
    """Yield the newest `limit` observations of the head, the newest first, each with its time in seconds since 1970."""
    head = DatasetNames(config.name).head
    wanted = dg.AssetRecordsFilter(head, after_timestamp=since.timestamp() if since else None)
    for record in instance.fetch_observations(wanted, limit=limit).records:
        if record.asset_observation is not None:
            yield record.timestamp, record.asset_observation
