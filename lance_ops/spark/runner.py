"""Run a plan's tasks on a Spark cluster.

A Python task costs Spark about 27 ms even if it does nothing, so tasks are sent in a few groups for each core. Only the
function, the tasks and their outcomes travel: paths and small values, never rows.

An error of a task does not fail the Spark job. It travels back as data, and the driver raises it again. So Spark
repeats only groups that the cluster itself lost. Files of a lost attempt are not among the outcomes and are never
committed.
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
    """An error from a worker: as text, and also pickled if that is possible."""

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
        """Call `function` with each task on the cluster, and return the outcomes in the order of the tasks.

        If a task fails, the rest of its group is skipped and the other groups run to their end. Then the error is
        raised; of several errors, that of the first task. Raises `TasksLost` if Spark could not run a group.
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
    """Deal tasks out in turn, because plans often list large tasks first, or tasks of one size together."""
    numbered = list(enumerate(tasks))
    return [numbered[start::num_groups] for start in range(min(num_groups, len(numbered)))]


def _run_groups(
    function: Callable[[T], R], groups: Iterable[list[tuple[int, T]]]
) -> Iterator[tuple[int, R] | _Failure]:
    for group in groups:
        for index, task in group:
            try:
                yield index, function(task)
            except Exception as error:  # noqa: BLE001 - every error must reach the driver
                yield _Failure.of(index, error)
                break  # the plan has failed, so the rest of this group is skipped


def _pickle_if_it_comes_back(error: Exception) -> bytes | None:
    """Pickle an error, or return None if it cannot be unpickled; its text then travels alone."""
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:  # noqa: BLE001 - a foreign class may raise anything here
        return None
    return pickled


def _reason(error: PySparkException | Py4JJavaError) -> str:
    """Return Spark's message about a failure, without the Java stack."""
    text = str(error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error)
    return text.strip().partition("\n")[0]
