"""Build the sensor that has the head checked after a backfill from the UI.

A run of the ingest job checks the head itself. A backfill from the UI, or the button "materialize", runs the selected
assets alone, in Dagster's own job of all assets; the head's checks belong to another asset.

A backfill of scattered partitions has a run for each range. The checks look at the newest version, so checks that begin
after a run has ended are also those of every run that ended before. They are the checks of a run of the ingest job:
`intact`, which reads files again, is left out.

Dagster's own sensors of a run's status end a tick at the first run for which they have something to say, and look at
five at most. A code location may end more runs than that in the time of a tick. So this sensor reads the log itself:
its cursor has a position in the log, and the newest run whose checks have not ended yet.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head import INTACT
from lance_ops.dagster.runs import materializes_any

__all__ = ["build_backfill_sensor"]

_RUNS_AT_ONCE = 500
_MOST_CHECKS = 20
"""How many of the newest runs of the checks' job are looked at."""
_MOST_TIME_TO_LAUNCH = timedelta(hours=1)
"""How long a run may stay created or starting. A daemon that dies before the launch may leave it so for good."""
_LAUNCHING = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING)


def build_backfill_sensor(
    config: DatasetConfig,
    jobs: Sequence[dg.JobDefinition | dg.UnresolvedAssetJobDefinition],
    checks: Sequence[dg.AssetCheckKey],
    interval_seconds: int = 15,
) -> dg.SensorDefinition:
    """Return the sensor of a dataset with a landing folder.

    It asks for those of the `checks` that read no file again, by the checks' job, which is one of `jobs`.
    """
    names = DatasetNames(config.name)
    (checks_job,) = (job for job in jobs if job.name == names.of("checks"))
    asked = [key for key in checks if key.name != INTACT]

    @dg.sensor(
        name=names.of("backfills"),
        job=checks_job,
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Has {config.name} checked after batches were ingested by another job than its own.",
    )
    def backfills(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        seen, newest = _Seen.decode(context.cursor), _Seen.from_now_on(context.instance)
        if seen is None:
            return _nothing(newest, "runs that succeed from now on are looked at")
        # SQLite gives the highest positions again after somebody deletes a run.
        seen = replace(seen, position=min(seen.position, newest.position))
        seen = _after_new_runs(context.instance, names, seen)
        if seen.unchecked is None:
            return _nothing(seen, f"no other job has ingested batches of {config.name}")
        checked = replace(seen, unchecked=None)
        later, has_looked = _checks_after(context.instance, checks_job.name, seen.unchecked)
        if later is None:
            request = dg.RunRequest(run_key=seen.unchecked, asset_selection=[], asset_check_keys=asked)
            return dg.SensorResult(run_requests=[request], cursor=checked.encode())
        if has_looked:
            return _nothing(checked, f"run {later[:8]} checked the head after run {seen.unchecked[:8]} had ended")
        return _nothing(seen, f"run {later[:8]} checks the head after run {seen.unchecked[:8]} has ended")

    return backfills


@dataclass(frozen=True)
class _Seen:
    """The sensor's cursor: how far Dagster's log was read, and the newest run that is not known to be checked."""

    position: int
    unchecked: str | None = None

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, cursor: str | None) -> _Seen | None:
        """Return what a cursor says; None for a lost or unreadable one."""
        try:
            found = json.loads(cursor or "null")
            return cls(int(found["position"]), found["unchecked"] and str(found["unchecked"]))
        except (ValueError, TypeError, KeyError):
            return None

    @classmethod
    def from_now_on(cls, instance: dg.DagsterInstance) -> _Seen:
        records = instance.fetch_run_status_changes(dg.DagsterEventType.RUN_SUCCESS, limit=1).records
        return cls(records[0].storage_id if records else 0)


def _nothing(seen: _Seen, reason: str) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=reason, cursor=seen.encode())


def _after_new_runs(instance: dg.DagsterInstance, names: DatasetNames, seen: _Seen) -> _Seen:
    """Return the cursor after the next runs that succeeded; of those that ingested batches the newest counts."""
    succeeded = dg.RunStatusChangeRecordsFilter(dg.DagsterEventType.RUN_SUCCESS, after_storage_id=seen.position)
    records = instance.fetch_run_status_changes(succeeded, limit=_RUNS_AT_ONCE, ascending=True).records
    if not records:
        return seen
    found = instance.get_runs(dg.RunsFilter(run_ids=list({record.run_id for record in records})))
    of_others = {
        run.run_id
        for run in found
        if run.job_name != names.of("ingest") and materializes_any(instance, run, [names.batches])
    }
    ingested = [record.run_id for record in records if record.run_id in of_others]
    return _Seen(records[-1].storage_id, ingested[-1] if ingested else seen.unchecked)


def _checks_after(instance: dg.DagsterInstance, job_name: str, run_id: str) -> tuple[str | None, bool]:
    """Return a run of the checks that began after a run had ended, or has not begun, and whether it has looked.

    None stands for no such run. A run that was cancelled, or that failed without an evaluation, has not looked; a
    blocking check that is red fails its run. A run that was not launched within an hour counts as no run.
    """
    oldest_launch = datetime.now(UTC) - _MOST_TIME_TO_LAUNCH
    ended = instance.get_run_record_by_id(run_id)
    under_way: str | None = None
    for found in instance.get_run_records(dg.RunsFilter(job_name=job_name), limit=_MOST_CHECKS):
        run = found.dagster_run
        if run.status in _LAUNCHING and found.update_timestamp < oldest_launch:
            continue
        began_before = ended is None or ended.end_time is None or (found.start_time or 0) < ended.end_time
        if not run.is_finished and (found.start_time is None or not began_before):
            under_way = run.run_id
        elif run.is_finished and found.start_time is not None and not began_before and _has_looked(instance, run):
            return run.run_id, True
    return under_way, False


def _has_looked(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    if run.is_success:
        return True
    evaluated = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    return bool(instance.get_records_for_run(run.run_id, of_type=evaluated, limit=1).records)
