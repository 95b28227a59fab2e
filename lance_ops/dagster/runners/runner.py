"""The resource that executes a run's tasks, in threads by default; the deployment chooses it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import dagster as dg
from pydantic import Field

from lance_ops.writing import InThreads, Runner

__all__ = ["RUNNER_KEY", "LanceRunner", "ThreadRunner"]

RUNNER_KEY = "lance_runner"
"""The resource's key; `lance_runner` is also the parameter's name in assets and ops."""


class LanceRunner(dg.ConfigurableResource, ABC):  # type: ignore[type-arg]  # the resource returns itself
    """Provides a runner for tasks. It is made at first use, because many runs find nothing to do."""

    @abstractmethod
    def runner(self) -> Runner:
        """Return the runner; every step of a run gets the same."""


class ThreadRunner(LanceRunner):
    """Runs tasks in threads of the process that executes the run."""

    max_workers: int | None = Field(default=None, description="Defaults to the machine's cores.")

    def runner(self) -> Runner:
        return InThreads(self.max_workers)
