"""The resource that executes a run's tasks, in threads by default; the deployment chooses it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.dagster.runners.progress_log import progress_in_log
from lance_ops.runners import InThreads, ReportProgress, Runner

__all__ = ["RUNNER_KEY", "LanceRunner", "ThreadRunner"]

RUNNER_KEY = "lance_runner"
"""The resource's key; `lance_runner` is also the parameter's name in assets and ops."""


class LanceRunner(dg.ConfigurableResource[Any], ABC):
    """Provides a runner for tasks. It is made at first use, because many runs find nothing to do."""

    @abstractmethod
    def runner(self, on_progress: ReportProgress | None = None) -> Runner:
        """Return the runner; `on_progress` is told how far its jobs are."""

    def logging_to(self, log: logging.Logger) -> Runner:
        """Return the runner; it logs how far a long job is."""
        return self.runner(progress_in_log(log))


class ThreadRunner(LanceRunner):
    """Runs tasks in threads of the process that executes the run."""

    max_workers: int | None = Field(default=None, description="Defaults to the machine's cores.")

    def runner(self, on_progress: ReportProgress | None = None) -> Runner:
        return InThreads(self.max_workers, on_progress)
