from __future__ import annotations

import dagster as dg
import pytest

from lance_ops.dagster.backfill_sensor import build_backfill_sensor
from lance_ops.dagster.jobs import build_jobs
from tests.dagster.deployment import Deployment

pytestmark = pytest.mark.dagster


def asked(deployment: Deployment, job: str) -> object:
    """Ingest a batch by a job; return what the sensor says about its run."""
    deployment.land("a", range(3))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["a"])
    result = deployment.location.run(job, tags={"dagster/partition": "a"})
    (ended,) = (event for event in result.all_events if event.is_job_success)
    sensor = build_backfill_sensor(deployment.config, build_jobs(deployment.config))
    with dg.build_run_status_sensor_context(sensor.name, ended, deployment.instance, result.dagster_run) as context:
        return sensor(context)


def test_a_run_of_the_ingest_job_is_not_checked_twice(deployment: Deployment) -> None:
    assert isinstance(asked(deployment, "trips_ingest"), dg.SkipReason)
