"""Where a run executes its tasks, as a Dagster resource."""

from lance_ops.dagster.runners.runner import RUNNER_KEY, LanceRunner
from lance_ops.dagster.runners.spark_runner import SparkRunner

__all__ = [
    "RUNNER_KEY",
    "LanceRunner",
    "SparkRunner",
]
