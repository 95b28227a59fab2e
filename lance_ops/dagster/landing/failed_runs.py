"""Find the batches whose runs failed, so that the sensor of raw files asks for them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetNames

__all__ = ["RANGE_END_TAG", "RANGE_START_TAG", "FailedRuns", "failed_batches", "failed_runs", "requested_keys"]

RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"

_PARTITION_TAG = "dagster/partition"
_WILL_RETRY_TAG = "dagster/will_retry"
_LOOKS_BACK = timedelta(days=1)
_MOST_RUNS = 100
_MOST_ATTEMPTS = 5


@dataclass(frozen=True)
class FailedRuns:
    """The newest run that failed to ingest a batch, and how many of its runs failed in the last day."""

    newest: str
    count: int

    @property
    def are_many(self) -> bool:
        """Whether the sensor leaves the batch to a person."""
        return self.count >= _MOST_ATTEMPTS

    @property
    def sentence(self) -> str:
        """What happened, and what happens next."""
        run = f"run {self.newest.partition('-')[0]}"
        if self.are_many:
            return f"{self.count} runs failed in a day, {run} last: materialize its partition when the cause is mended"
        return f"{run} failed; the sensor asks for it again"


def failed_runs(
    instance: dg.DagsterInstance, names: DatasetNames, known: Sequence[str], now: datetime
) -> dict[str, FailedRuns]:
    """Return the batches of which a run failed in the last day, by key; of at most 100 failed runs, the newest.

    Runs that Dagster retries do not count. A batch is also returned if a later run of it succeeded: the caller compares
    with the table, and leaves out what the table has.
    """
    runs = instance.get_run_records(
        dg.RunsFilter(
            job_name=names.of("ingest"), statuses=[dg.DagsterRunStatus.FAILURE], updated_after=now - _LOOKS_BACK
        ),
        limit=_MOST_RUNS,
    )
    newest: dict[str, str] = {}
    attempts: Counter[str] = Counter()
    for record in runs:  # the newest first
        run = record.dagster_run
        if run.tags.get(_WILL_RETRY_TAG) == "true":
            continue
        for key in requested_keys(run, known):
            attempts[key] += 1
            newest.setdefault(key, run.run_id)
    return {key: FailedRuns(run, attempts[key]) for key, run in newest.items()}


def failed_batches(
    instance: dg.DagsterInstance, names: DatasetNames, known: Sequence[str], now: datetime
) -> dict[str, str]:
    """Return the keys of batches to ask for again if the table lacks them, each with its newest failed run's id.

    A batch that failed five times in a day is left out: the check `batches_settled` names it, and a person may ask for
    it.
    """
    failed = failed_runs(instance, names, known, now)
    return {key: runs.newest for key, runs in failed.items() if not runs.are_many}


def requested_keys(run: dg.DagsterRun, known: Sequence[str]) -> Iterable[str]:
    """Return the keys of batches that a run was asked to ingest; `known` are Dagster's partitions in its order."""
    partition, start, end = (run.tags.get(tag) for tag in (_PARTITION_TAG, RANGE_START_TAG, RANGE_END_TAG))
    if start is not None and end is not None and start in known and end in known:
        return known[known.index(start) : known.index(end) + 1]
    return () if partition is None else (partition,)
