"""Build the assets, checks, jobs, sensors and schedule of one declared dataset."""

from __future__ import annotations

import dagster as dg

from lance_ops.dagster.alerts import Watched, build_alert_sensors
from lance_ops.dagster.backfill_sensor import build_backfill_sensor
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.head import (
    build_checks,
    build_freshness_sensor,
    build_version_sensor,
    head_spec,
    index_specs,
)
from lance_ops.dagster.jobs import build_jobs, build_schedules
from lance_ops.dagster.landing import (
    batches_asset,
    build_landing_check,
    build_raw_sensor,
    build_settled_check,
    build_settled_sensor,
)
from lance_ops.dagster.runners import runner_resources
from lance_ops.dagster.upkeep import build_upkeep

__all__ = ["build_asset_definitions", "build_definitions", "build_job_definitions"]


def build_definitions(config: DatasetConfig) -> dg.Definitions:
    """Return the assets, checks, jobs, sensors, schedule and runner of a dataset.

    The code location adds the resource `lance_runner` if the dataset's runner is `code_location`, its default.
    """
    return dg.Definitions.merge(build_asset_definitions(config), build_job_definitions(config))


def build_asset_definitions(config: DatasetConfig) -> dg.Definitions:
    """Return the dataset's head, its batches, their checks, and its runner if it declares one."""
    batches = [batches_asset(config)] if config.raw is not None else []
    return dg.Definitions(
        assets=[head_spec(config), *index_specs(config), *batches],
        asset_checks=_checks(config),
        resources=runner_resources(config),
    )


def build_job_definitions(config: DatasetConfig) -> dg.Definitions:
    """Return the dataset's jobs, sensors and schedule."""
    jobs = build_jobs(config)
    checks = [key for definition in _checks(config) for key in definition.check_keys]
    sensors = [build_version_sensor(config)]
    if config.health.hours_without_version is not None:
        sensors.append(build_freshness_sensor(config))
    if config.raw is not None:
        of_backfills = build_backfill_sensor(config, jobs, checks)
        sensors += [build_raw_sensor(config), build_settled_sensor(config), of_backfills]
    upkeep = build_upkeep(config)
    all_jobs = frozenset(job.name for job in (*jobs, *(upkeep.jobs or ())))
    sensors += build_alert_sensors(Watched(config.name, all_jobs, [key.name for key in checks], config), config.alerts)
    scheduled = dg.Definitions(jobs=jobs, sensors=sensors, schedules=build_schedules(config))
    return dg.Definitions.merge(scheduled, upkeep)


def _checks(config: DatasetConfig) -> list[dg.AssetChecksDefinition]:
    """Return the checks of the head."""
    of_landing = [build_landing_check(config), build_settled_check(config)] if config.raw is not None else []
    return [*build_checks(config), *of_landing]
