"""Runners, which execute a plan's tasks in threads or elsewhere.

A plan's tasks are small picklable values and `execute` is a plain function of one of them, so the same plan runs in
the threads of this process or, with `lance_ops.spark.OnSpark`, on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lance_ops.core.cores import available_cores

__all__ = ["InThreads", "Runner", "run_all_or_discard"]

T = TypeVar("T")
R = TypeVar("R")


class Runner(Protocol):
    """Executes tasks somewhere and returns their outcomes in the tasks' order.

    The first error of a task is raised only when no other task is running, so that the caller can delete what the tasks
    wrote without racing with them.
    """

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """Call `function` with each task."""
        ...


@dataclass(frozen=True)
class InThreads:
    """Runs tasks in a thread pool of this process; `max_workers` defaults to `available_cores`."""

    max_workers: int | None = None

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """Call `function` with each task, at most `max_workers` at a time."""
        workers = min(self.max_workers or available_cores(), len(tasks))
        if workers <= 1:
            return [function(task) for task in tasks]
        with ThreadPoolExecutor(workers, thread_name_prefix="lance-ops") as pool:
            futures = [pool.submit(function, task) for task in tasks]
        return [future.result() for future in futures]


def run_all_or_discard(
    runner: Runner, function: Callable[[T], R], tasks: Sequence[T], discard: Callable[[R], None]
) -> list[R]:
    """Run every task to its end; if one failed, `discard` the others' outcomes and raise its error.

    So every file of a task is either handed to a commit or deleted at once. Only a killed process leaves files behind.
    """
    results = runner.map(_Guarded(function), tasks)
    failures = [result.error for result in results if isinstance(result, _Failed)]
    outcomes = [result for result in results if not isinstance(result, _Failed)]
    if failures:
        for outcome in outcomes:
            discard(outcome)
        raise failures[0]
    return outcomes


@dataclass(frozen=True)
class _Failed:
    error: Exception


@dataclass(frozen=True)
class _Guarded(Generic[T, R]):
    """A function that returns its errors as values, so that no runner stops before every task has run."""

    function: Callable[[T], R]

    def __call__(self, task: T) -> R | _Failed:
        try:
            return self.function(task)
        except Exception as error:  # noqa: BLE001 (raised again by run_all_or_discard, once every task has ended)
            return _Failed(error)
