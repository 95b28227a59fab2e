"""Run a plan's tasks on a Spark cluster.

A Python task costs Spark some 27 ms however little it does, so tasks travel in a few groups per core, never one by
one. Only the function, the tasks and their outcomes cross: paths and small values, never rows.

An error does not fail the Spark job: it travels back as data and is raised here as what it was. That also keeps Spark
from running a group again whose failure is not the cluster's. Groups that the cluster does lose are run again by
Spark; what the lost attempt left behind is not among the outcomes, so it is never committed.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lance_ops.core.errors import InvalidInput, LanceOpsError, TasksLost

__all__ = ["OnSpark"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class _Failure:
    """An error as it left the worker: pickled where that is possible, and always as text."""

    index: int
    pickled: bytes | None
    summary: str
    trace: str

    @classmethod
    def of(cls, index: int, error: Exception) -> _Failure:
        summary = f"{type(error).__name__}: {error}"
        return cls(index, _pickle_if_it_comes_back(error), summary, "".join(traceback.format_exception(error)))

    def error(self) -> Exception:
        if self.pickled is None:
            error: Exception = LanceOpsError(self.summary)
        else:
            error = pickle.loads(self.pickled)
        error.add_note(f"raised in a Spark worker:\n{self.trace}")
        return error


@dataclass(frozen=True)
class OnSpark:
    """Runs tasks on the workers of a Spark session, in `tasks_per_core` groups per core."""

    session: SparkSession
    tasks_per_core: int = 3

    def __post_init__(self) -> None:
        if self.tasks_per_core < 1:
            raise InvalidInput(f"tasks_per_core must be at least 1, not {self.tasks_per_core}")

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """Call `function` with each task somewhere on the cluster and return the outcomes in the tasks' order.

        When a task fails, the rest of its group is left out and the other groups run to their end; then the error is
        raised, of several the one whose task comes first. Raises `TasksLost` when Spark could not run a group at all.
        """
        if not tasks:
            return []
        context = self.session.sparkContext
        groups = _deal(tasks, context.defaultParallelism * self.tasks_per_core)
        job = context.parallelize(groups, len(groups)).mapPartitions(lambda parts: _run_groups(function, parts))
        try:
            reported = job.collect()
        except (PySparkException, Py4JJavaError) as error:
            raise TasksLost(f"Spark gave the tasks up: {_reason(error)}") from error
        failures = [outcome for outcome in reported if isinstance(outcome, _Failure)]
        if failures:
            raise min(failures, key=lambda failure: failure.index).error()
        outcomes = dict(outcome for outcome in reported if not isinstance(outcome, _Failure))
        return [outcomes[index] for index in range(len(tasks))]


def _deal(tasks: Sequence[T], num_groups: int) -> list[list[tuple[int, T]]]:
    """Deal tasks out like cards: plans often list big tasks first, or neighbours of one size together."""
    numbered = list(enumerate(tasks))
    return [numbered[start::num_groups] for start in range(min(num_groups, len(numbered)))]


def _run_groups(
    function: Callable[[T], R], groups: Iterable[list[tuple[int, T]]]
) -> Iterator[tuple[int, R] | _Failure]:
    for group in groups:
        for index, task in group:
            try:
                yield index, function(task)
            except Exception as error:  # noqa: BLE001 - every error is to reach the driver as itself
                yield _Failure.of(index, error)
                break  # the plan has failed: the rest of this group would be work for nothing


def _pickle_if_it_comes_back(error: Exception) -> bytes | None:
    """Pickle an error; not every class survives, and one that does not must not hide what happened."""
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:  # noqa: BLE001 - whatever a foreign class raises, its text travels instead
        return None
    return pickled


def _reason(error: PySparkException | Py4JJavaError) -> str:
    """Return what Spark says happened, without the stack of its own."""
    text = str(error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error)
    return text.strip().partition("\n")[0]
