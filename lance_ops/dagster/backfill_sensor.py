"""Build the sensor that has the head checked after a backfill from the UI.

A run of the ingest job checks the head itself. A backfill from the UI, or the button "materialize", runs the selected
assets alone, in Dagster's own job of all assets; the head's checks belong to another asset.

A backfill of scattered partitions has a run for each range. The checks look at the newest version, so checks that begin
after a run has ended are also those of every run that ended before. They are the checks of a run of the ingest job:
`intact`, which reads files again, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head import INTACT

__all__ = ["build_backfill_sensor"]

_LOOKS = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
]
"""States of a run of the checks that has looked at the head, or will. A blocking check that is red fails its run."""


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

    @dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        name=names.of("backfills"),
        request_job=checks_job,
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Has {config.name} checked after batches were ingested by another job than its own.",
    )
    def backfills(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        run = context.dagster_run
        if run.job_name == names.of("ingest"):
            return dg.SkipReason("the ingest job checks the head itself")
        if names.batches not in (run.asset_selection or ()):
            return dg.SkipReason(f"the run ingested no batch of {config.name}")
        later = _checks_after(context.instance, checks_job.name, run)
        if later is not None:
            return dg.SkipReason(f"run {later.run_id[:8]} checks the head after this run has ended")
        return dg.RunRequest(run_key=run.run_id, asset_selection=[], asset_check_keys=asked)

    return backfills


def _checks_after(instance: dg.DagsterInstance, job_name: str, run: dg.DagsterRun) -> dg.DagsterRun | None:
    """Return a run of the checks that began after a run has ended, or has not begun; None if there is none."""
    ended = instance.get_run_record_by_id(run.run_id)
    newest = instance.get_run_records(dg.RunsFilter(job_name=job_name, statuses=_LOOKS), limit=1)
    if ended is None or ended.end_time is None or not newest:
        return None
    (found,) = newest
    waits = found.start_time is None and not found.dagster_run.is_finished
    begins_after = found.start_time is not None and found.start_time >= ended.end_time
    return found.dagster_run if waits or begins_after else None
