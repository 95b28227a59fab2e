"""The contract of runners, which execute a plan's tasks in threads or elsewhere.

A plan's tasks are small picklable values and `execute` is a plain function of one of them, so the same plan runs in
the threads of this process or, with `lance_ops.spark.OnSpark`, on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from lance_ops.runners.job import Job

__all__ = ["Runner", "RunnerWithSlots"]

T = TypeVar("T")
R = TypeVar("R")


class Runner(Protocol):
    """Executes tasks somewhere and returns their outcomes in the tasks' order."""

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Call `function` with each task; `job` says what for, to people who watch.

        A runner may call `function` several times with one task, in several processes at once, too: a cluster repeats
        what it has lost, and starts another attempt beside a slow one. One outcome of each task counts. So `function`
        writes files under new names alone, and what it does otherwise has the same effect however often it is done.
        `Job.remove_files` removes the files of attempts without an outcome, after a job that failed. After a job that
        succeeded, clean-up removes them.

        If a task fails or the caller is interrupted, tasks that have not begun are dropped and the others run to their
        end or are killed. Then `discard` is called with each outcome, so that it can delete the files that a task
        wrote, and the error is raised; of several errors, that of the first task.
        """
        ...


@runtime_checkable
class RunnerWithSlots(Runner, Protocol):
    """A runner on a cluster, for which a plan may have more tasks, and smaller ones."""

    def num_slots(self) -> int:
        """Return how many tasks it runs at once when it has all its workers."""
        ...
