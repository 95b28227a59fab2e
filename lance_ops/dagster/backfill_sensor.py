"""Build the sensor that has the head checked after a backfill from the UI.

A run of the ingest job checks the head itself. A backfill from the UI, or the button "materialize", runs the selected
assets alone, in Dagster's own job of all assets; the head's checks belong to another asset.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames

__all__ = ["build_backfill_sensor"]


def build_backfill_sensor(
    config: DatasetConfig,
    jobs: Sequence[dg.JobDefinition | dg.UnresolvedAssetJobDefinition],
    interval_seconds: int = 15,
) -> dg.SensorDefinition:
    """Return the sensor of a dataset with a landing folder; it asks for the checks' job, one of `jobs`, once a run."""
    names = DatasetNames(config.name)
    (checks,) = (job for job in jobs if job.name == names.of("checks"))

    @dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        name=names.of("backfills"),
        request_job=checks,
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
        return dg.RunRequest(run_key=run.run_id)

    return backfills
