"""Find the runs that were asked to ingest batches: those that have not ended, and those that ended badly.

They are runs of the ingest job, and of any job that materializes the batches: a backfill from the UI is one of
Dagster's own job of all assets.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import datetime, timedelta

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetNames
from lance_ops.dagster.runs import awaits_retry, materializes_any, wait_before_retry, was_retried
from lance_ops.maintenance import BatchHistory

__all__ = [
    "RANGE_END_TAG",
    "RANGE_START_TAG",
    "FailedRuns",
    "UnsuccessfulRun",
    "failed_runs",
    "given_up_batches",
    "may_be_retried",
    "running_batches",
    "without_removed_batches",
]

RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"

_PARTITION_TAG = "dagster/partition"
_MAX_RETRIES_TAG = "dagster/max_retries"
_RETRIES_STEPS_TAG = "dagster/retry_on_asset_or_op_failure"
_LOOKS_BACK = timedelta(days=1)
_MOST_RUNS = 100
"""How many runs of the ingest job that have ended are looked at."""
_MOST_OTHER_RUNS = 1000
"""How many runs of the instance are searched for those of other jobs: Dagster cannot filter runs by assets."""
_MOST_ATTEMPTS = 5
_UNDER_WAY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.MANAGED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True)
class FailedRuns:
    """The newest run that failed to ingest a batch, when it `ended`, and how many runs failed in the day up to then.

    `is_old` says that it failed more than a day ago.
    """

    newest: str
    ended: datetime
    count: int
    is_old: bool = False

    @property
    def are_many(self) -> bool:
        """Whether the sensor leaves the batch to a person."""
        return self.count >= _MOST_ATTEMPTS

    @property
    def asked_again_at(self) -> datetime:
        """When the sensor asks for the same files again. It waits, as the cause may last and a day has few attempts."""
        return self.ended + wait_before_retry(self.count)

    @property
    def sentence(self) -> str:
        """What happened, and what happens next."""
        run = f"run {self.newest.partition('-')[0]}"
        if self.are_many:
            return f"{self.count} runs failed in a day, {run} last: materialize its partition when the cause is mended"
        # No time of day: a run that evaluates the checks does not know yet when it ends.
        wait = wait_before_retry(self.count) // timedelta(minutes=1)
        return f"{run} failed; the sensor asks for it again {wait} minutes after its end"


@dataclass(frozen=True)
class UnsuccessfulRun:
    """The newest failed or cancelled run of a batch: when it ended, and whether it was cancelled."""

    ended: datetime
    was_cancelled: bool


def running_batches(
    instance: dg.DagsterInstance,
    names: DatasetNames,
    known: Sequence[str],
    now: datetime,
    failing: dg.DagsterRun | None = None,
) -> set[str]:
    """Return the keys of batches whose runs have not ended, or failed and are about to be retried by Dagster.

    They are all such runs of the ingest job, and those of other jobs among the newest 1,000 of the instance.
    Here and below, `known` are Dagster's partitions in its order, and `failing` is a run that counts as failed already,
    because its ingestion has failed for good.
    """
    found: set[str] = set()
    for record in _newest(instance, names, known, _UNDER_WAY, most_of_job=None):
        if failing is None or record.dagster_run.run_id != failing.run_id:
            found.update(_requested_keys(record.dagster_run, known))
    for record in _newest(instance, names, known, [dg.DagsterRunStatus.FAILURE], now - _LOOKS_BACK):
        if awaits_retry(instance, record.dagster_run, record.update_timestamp, now):
            found.update(_requested_keys(record.dagster_run, known))
    return found


def failed_runs(
    instance: dg.DagsterInstance,
    names: DatasetNames,
    known: Sequence[str],
    now: datetime,
    failing: dg.DagsterRun | None = None,
    *,
    only_last_day: bool = False,
    all_runs: bool = False,
) -> dict[str, FailedRuns]:
    """Return, by key, the batches that the sensor asks for again because their runs failed.

    Only the runs that `_newest` returns are seen; with `all_runs` they are all of the ingest job.
    They are those of which a run failed in the last day. Without `only_last_day`, which reads fewer runs, they are also
    those whose runs failed before, but fewer than five in a day: the sensor may have been off since. Runs that Dagster
    retries do not count. A batch is also returned if a later run of it succeeded: the caller compares with the table,
    and leaves out what the table has.

    If runs were left out that may have failed in the day up to a batch's newest failure, that day is read whole. Else a
    batch with five failures would be taken for one with fewer as soon as other batches fail, and asked for again.
    """
    since, most = now - _LOOKS_BACK if only_last_day else None, None if all_runs else _MOST_RUNS
    records = _newest(instance, names, known, [dg.DagsterRunStatus.FAILURE], since, most)
    newest = _counted(instance, records, known, now, failing)
    few = [last for _, last, count in newest.values() if count < _MOST_ATTEMPTS]
    if few and not all_runs and (only_last_day or len(records) >= _MOST_RUNS):
        earlier = min(few) - _LOOKS_BACK
        records = _newest(instance, names, known, [dg.DagsterRunStatus.FAILURE], earlier, most_of_job=None)
        whole = _counted(instance, records, known, now, failing)
        newest = {key: whole.get(key, counted) for key, counted in newest.items()}
    found = {
        key: FailedRuns(run_id, last, count, now - last >= _LOOKS_BACK) for key, (run_id, last, count) in newest.items()
    }
    return {key: runs for key, runs in found.items() if not (runs.is_old and runs.are_many)}


def _counted(
    instance: dg.DagsterInstance,
    records: Sequence[dg.RunRecord],
    known: Sequence[str],
    now: datetime,
    failing: dg.DagsterRun | None,
) -> dict[str, tuple[str, datetime, int]]:
    """Return the newest failed run of each batch, when it ended, and how many failed in the day up to then."""
    newest: dict[str, tuple[str, datetime, int]] = {}
    if failing is not None:
        newest = dict.fromkeys(_keys_of_failing(failing, known), (failing.run_id, now, 1))
    for record in records:
        run, ended = record.dagster_run, record.update_timestamp
        if was_retried(run) or awaits_retry(instance, run, ended, now):
            continue
        for key in _requested_keys(run, known):
            run_id, last, count = newest.get(key, (run.run_id, ended, 0))
            newest[key] = run_id, last, count + (last - ended < _LOOKS_BACK)
    return newest


def without_removed_batches(
    failed: Mapping[str, FailedRuns], recorded: Container[str], history: BatchHistory
) -> dict[str, FailedRuns]:
    """Return the failed runs without those of batches that a restore or an overwrite took out of the table later.

    The history tells when the table was last set back. If it does not tell it, the old failures of batches that were
    `recorded` as partitions, and that the table does not hold, are left out. Only a person asks for such batches.
    """
    set_back_at = history.set_back_at

    def was_before(key: str, runs: FailedRuns) -> bool:
        if key in history.taken_out and set_back_at is not None and runs.ended < set_back_at:
            return True
        return runs.is_old and key in recorded and key not in history.held

    return {key: runs for key, runs in failed.items() if not was_before(key, runs)}


def given_up_batches(
    instance: dg.DagsterInstance,
    names: DatasetNames,
    known: Sequence[str],
    now: datetime,
    failed: Container[str],
    failing: dg.DagsterRun | None = None,
    *,
    all_runs: bool = False,
) -> dict[str, UnsuccessfulRun]:
    """Return the batches of which a run was cancelled, or five failed in a day, with the last of these runs.

    `failed` is what `failed_runs` returns of all days. For each batch only its newest failed or cancelled run counts,
    among those that `_newest` returns; with `all_runs` they are all of the ingest job. A failure in the last day does
    not give a batch up. The sensor does not ask again for content that was in the folder then. A batch is also returned
    if another run of it succeeded.
    """
    bad = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
    newest = dict.fromkeys(_keys_of_failing(failing, known), UnsuccessfulRun(now, was_cancelled=False))
    for record in _newest(instance, names, known, bad, most_of_job=None if all_runs else _MOST_RUNS):
        run = UnsuccessfulRun(record.update_timestamp, record.dagster_run.status is dg.DagsterRunStatus.CANCELED)
        for key in _requested_keys(record.dagster_run, known):
            newest.setdefault(key, run)
    return {
        key: run
        for key, run in newest.items()
        if run.was_cancelled or (now - run.ended >= _LOOKS_BACK and key not in failed)
    }


def may_be_retried(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Return whether Dagster may start a run again after a step of it failed.

    The answer is also yes if the run has used all its retries.
    """
    if not instance.run_retries_enabled or _max_retries(instance, run) < 1:
        return False
    stated = run.tags.get(_RETRIES_STEPS_TAG)
    return instance.run_retries_retry_on_asset_or_op_failure if stated is None else stated.lower() == "true"


def _max_retries(instance: dg.DagsterInstance, run: dg.DagsterRun) -> int:
    """Return how often Dagster may start a run again; never, if the run's tag is no number."""
    stated = run.tags.get(_MAX_RETRIES_TAG)
    try:
        return instance.run_retries_max_retries if stated is None else int(stated)
    except ValueError:
        return 0


def _newest(
    instance: dg.DagsterInstance,
    names: DatasetNames,
    known: Sequence[str],
    statuses: list[dg.DagsterRunStatus],
    since: datetime | None = None,
    most_of_job: int | None = _MOST_RUNS,
) -> Sequence[dg.RunRecord]:
    """Return the runs of these statuses that were asked for batches, the newest first.

    They are the newest `most_of_job` of the ingest job, whatever other jobs run, and those of other jobs among the
    newest 1,000.
    """
    job_name = names.of("ingest")
    of_job = dg.RunsFilter(job_name=job_name, statuses=statuses, updated_after=since)
    of_any_job = dg.RunsFilter(statuses=statuses, updated_after=since)
    found = [*instance.get_run_records(of_job, limit=most_of_job)]
    for record in instance.get_run_records(of_any_job, limit=_MOST_OTHER_RUNS):
        run = record.dagster_run
        if run.job_name == job_name or not _requested_keys(run, known):
            continue
        if materializes_any(instance, run, {names.batches}):
            found.append(record)
    return sorted(found, key=lambda record: record.storage_id, reverse=True)


def _keys_of_failing(failing: dg.DagsterRun | None, known: Sequence[str]) -> Sequence[str]:
    return () if failing is None else tuple(_requested_keys(failing, known))


def _requested_keys(run: dg.DagsterRun, known: Sequence[str]) -> Sequence[str]:
    """Return the keys of batches that a run was asked to ingest.

    There are none if the first or the last partition of a range was deleted since: the run names only these two.
    """
    partition, start, end = (run.tags.get(tag) for tag in (_PARTITION_TAG, RANGE_START_TAG, RANGE_END_TAG))
    if start is not None and end is not None and start in known and end in known:
        return known[known.index(start) : known.index(end) + 1]
    return () if partition is None else (partition,)
