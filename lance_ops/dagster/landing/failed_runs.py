"""Find the batches whose runs failed, so that the sensor of raw files asks for them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import dagster as dg

from lance_ops.dagster.declaration import DatasetNames

__all__ = ["RANGE_END_TAG", "RANGE_START_TAG", "failed_batches"]

RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"

_PARTITION_TAG = "dagster/partition"
_WILL_RETRY_TAG = "dagster/will_retry"
_LOOKS_BACK = timedelta(days=1)
_MOST_RUNS = 100
_MOST_ATTEMPTS = 5


def failed_batches(
    instance: dg.DagsterInstance, names: DatasetNames, known: Sequence[str], now: datetime
) -> dict[str, str]:
    """Return the keys of batches whose newest run of the last day failed, each with the id of that run.

    Runs that Dagster retries by itself do not count. A batch that failed five times in a day is left out: the check
    `batches_settled` names it, and a person may ask for it.
    """
    runs = instance.get_run_records(
        dg.RunsFilter(
            job_name=names.of("ingest"), statuses=[dg.DagsterRunStatus.FAILURE], updated_after=now - _LOOKS_BACK
        ),
        limit=_MOST_RUNS,
    )
    found: dict[str, str] = {}
    attempts: Counter[str] = Counter()
    for record in runs:  # the newest first
        tags = record.dagster_run.tags
        if tags.get(_WILL_RETRY_TAG) == "true":
            continue
        for key in _keys(tags.get(_PARTITION_TAG), tags.get(RANGE_START_TAG), tags.get(RANGE_END_TAG), known):
            attempts[key] += 1
            found.setdefault(key, record.dagster_run.run_id)
    return {key: run for key, run in found.items() if attempts[key] < _MOST_ATTEMPTS}


def _keys(partition: str | None, start: str | None, end: str | None, known: Sequence[str]) -> Iterable[str]:
    """Return the keys that a run was asked for."""
    if start is not None and end is not None and start in known and end in known:
        return known[known.index(start) : known.index(end) + 1]
    return () if partition is None else (partition,)
