"""The Dagster code location of this deployment: assets, jobs, sensors, schedules and resources."""

from __future__ import annotations

import os

import dagster as dg

from assets.definitions import asset_definitions, declared_datasets
from lance_ops.dagster import build_job_definitions
from lance_ops.dagster.runners import RUNNER_KEY, LanceRunner, SparkRunner

__all__ = ["definitions", "definitions_on"]

_SPARK_SETTINGS = {"spark.driver.memory": "1g", "spark.log.level": "ERROR"}


@dg.definitions
def definitions() -> dg.Definitions:
    """Return all definitions. `SPARK_MASTER` names the cluster; without it, Spark runs on this machine's cores."""
    return definitions_on(SparkRunner(master=os.environ.get("SPARK_MASTER"), config=_SPARK_SETTINGS))


def definitions_on(runner: LanceRunner) -> dg.Definitions:
    """Return all definitions, with a runner for the tasks of every dataset."""
    return dg.Definitions.merge(
        asset_definitions(),
        *[build_job_definitions(config) for config in declared_datasets()],
        # A backfill from the UI has no job of its own. In one process, all of its steps share one Spark session.
        dg.Definitions(resources={RUNNER_KEY: runner}, executor=dg.in_process_executor),
    )
