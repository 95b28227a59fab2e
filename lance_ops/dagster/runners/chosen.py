"""Find the resource that a declared dataset's tasks run on: the code location's, or one of the dataset's own.

Dagster refuses two resources under one key. A dataset that chooses its own runner therefore has a key of its own.
"""

from __future__ import annotations

from typing import Protocol, assert_never

from lance_ops.dagster import runners
from lance_ops.dagster.declaration import DatasetNames, OnSpark, OnThreads, RunnerChoice, SparkSettings
from lance_ops.dagster.runners.runner import RUNNER_KEY, LanceRunner, ThreadRunner

__all__ = ["runner_key", "runner_resources"]


class ChoosesRunner(Protocol):
    """The declaration of a dataset or of a fleet."""

    @property
    def name(self) -> str:
        """The declared name."""
        ...

    @property
    def runner(self) -> RunnerChoice:
        """What executes the tasks."""
        ...


def runner_key(config: ChoosesRunner) -> str:
    """Return the key of the resource that executes the dataset's tasks."""
    return RUNNER_KEY if config.runner == "code_location" else DatasetNames(config.name).of("runner")


def runner_resources(config: ChoosesRunner) -> dict[str, LanceRunner]:
    """Return the dataset's own runner under its key; nothing if the code location provides `lance_runner`.

    Raises `MissingPackage` if the dataset's tasks run on Spark and the `spark` extra is not installed.
    """
    chosen = config.runner
    match chosen:
        case "code_location":
            return {}
        case "threads":
            resource: LanceRunner = ThreadRunner()
        case OnThreads():
            resource = ThreadRunner(max_workers=chosen.threads.max_workers)
        case "spark" | OnSpark():
            spark = SparkSettings() if chosen == "spark" else chosen.spark
            resource = runners.SparkRunner(master=spark.master, config=spark.conf, tasks_per_core=spark.tasks_per_core)
        case _:
            assert_never(chosen)
    return {runner_key(config): resource}
