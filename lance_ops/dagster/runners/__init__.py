"""Where a run executes its tasks, as a Dagster resource; `SparkRunner` imports Spark when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use
from lance_ops.dagster.runners.progress_log import progress_in_log
from lance_ops.dagster.runners.runner import RUNNER_KEY, LanceRunner, ThreadRunner

if TYPE_CHECKING:
    from lance_ops.dagster.runners.chosen import runner_key, runner_resources
    from lance_ops.dagster.runners.spark_runner import SparkRunner

__all__ = [
    "RUNNER_KEY",
    "LanceRunner",
    "SparkRunner",
    "ThreadRunner",
    "progress_in_log",
    "runner_key",
    "runner_resources",
]

_MODULES = {"SparkRunner": "spark_runner", "runner_key": "chosen", "runner_resources": "chosen"}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
