"""Build the job that pays what a dataset owes, and the sensor that requests it.

Every dataset has the job. Only a dataset that declares `maintenance.upkeep` has the sensor and a budget. Without the
declaration, nothing bounds the bytes that a run of the job rewrites.
"""

from __future__ import annotations

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.upkeep.paying import upkeep_job
from lance_ops.dagster.upkeep.sensor import build_upkeep_sensor

__all__ = ["build_upkeep"]


def build_upkeep(config: DatasetConfig) -> dg.Definitions:
    """Return the job `<dataset>_upkeep`, and the sensor `<dataset>_debt` if `maintenance.upkeep` is declared."""
    policy = config.maintenance.upkeep
    sensors = [] if policy is None else [build_upkeep_sensor(config, policy)]
    return dg.Definitions(jobs=[upkeep_job(config)], sensors=sensors)
