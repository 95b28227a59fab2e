"""What a worker does with a task, and what the driver makes of all reports.

An error of a task does not fail the Spark job. It travels back as data, and the driver raises it again. Only an error
that another attempt may not meet, such as a store that is too busy, fails the attempt, and Spark repeats it as often as
it may, elsewhere if it can. Files of a lost attempt are not among the outcomes and are never committed.
"""

from __future__ import annotations

import pickle
import re
import traceback
from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias, TypeVar

from pyspark import TaskContext

from lance_ops.core.errors import LanceOpsError, StoreError, StoreUnreachable, TasksLost, WrongType
from lance_ops.core.file_names import file_names_of_job
from lance_ops.core.records import dataclass
from lance_ops.runners import Job
from lance_ops.spark.running.cluster_settings import Settings
from lance_ops.spark.running.pickling import pickle_by_value

__all__ = ["Attempts", "Failure", "Reported", "max_attempts", "outcomes_or_raise", "remove_files"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Failure:
    """An error from a worker: as text, and also pickled if that is possible."""

    index: int
    pickled: bytes | None
    summary: str
    trace: str

    @classmethod
    def of(cls, index: int, error: BaseException) -> Failure:
        """Return an error of the task with this index, to be sent to the driver.

        An error that would end the driver, such as `SystemExit`, travels as text alone.
        """
        summary = f"{type(error).__name__}: {error}"
        pickled = _pickle_if_it_comes_back(error) if isinstance(error, Exception) else None
        return cls(index, pickled, summary, "".join(traceback.format_exception(error)))

    def error(self, num_tasks: int, job: Job | None) -> Exception:
        """Return the error with a note that names the task."""
        if self.pickled is None:
            error: Exception = LanceOpsError(self.summary)
        else:
            error = pickle.loads(self.pickled)
        work = "" if job is None else f" of {str(job)!r}"
        error.add_note(f"raised in a Spark worker by task {self.index + 1} of {num_tasks}{work}:\n{self.trace}")
        return error


Reported: TypeAlias = tuple[int, bytes] | Failure
"""What a worker tells of one task: its index with its pickled outcome, or its error."""


@dataclass(frozen=True)
class Attempts(Generic[T, R]):
    """Calls a function with a task in a worker, and puts the job's token into the names of its data files."""

    function: Callable[[T], R]
    max_attempts: int
    token: str

    def report(self, index: int, task: T) -> Reported:
        """Return the outcome or the error; raise an error that another attempt may not meet.

        The outcome is pickled here: an outcome that cannot be pickled is an error of the task. Spark copies the bytes.
        """
        try:
            with file_names_of_job(self.token):
                outcome = self.function(task)
            return index, _pickled(outcome)
        except Exception as error:
            if _is_transient(error) and _attempt_number() + 1 < self.max_attempts:
                raise
            return Failure.of(index, error)
        except (SystemExit, KeyboardInterrupt) as error:  # it would end the worker, and Spark would not say why
            return Failure.of(index, error)


def outcomes_or_raise(
    reported: Iterable[Reported],
    num_tasks: int,
    job: Job | None,
    token: str,
    discard: Callable[[R], None] | None,
) -> list[R]:
    """Return the outcomes in the order of the tasks, whose numbers begin at 0.

    If a task failed, discard the outcomes of the others, remove the job's files, and raise the first task's error, or
    `TasksLost` if a task reported nothing: a plan must not be committed without some of its outcomes.
    """
    failures, outcomes = list[Failure](), dict[int, R]()
    try:
        for each in reported:
            if isinstance(each, Failure):
                failures.append(each)
            else:
                outcomes[each[0]] = pickle.loads(each[1])
    except BaseException:  # of an outcome's class, which may refuse to be unpickled here
        remove_files(job, token)
        raise
    lost = [index for index in range(num_tasks) if index not in outcomes]
    if failures or lost:
        if discard is not None:
            for index in sorted(outcomes):
                discard(outcomes[index])
        remove_files(job, token)  # of attempts that failed or were lost
        if not failures:
            raise TasksLost(f"task {lost[0] + 1} of {num_tasks} reported nothing")
        raise min(failures, key=lambda failure: failure.index).error(num_tasks, job)
    return [outcomes[index] for index in range(num_tasks)]


def remove_files(job: Job | None, token: str) -> None:
    """Remove the files that tasks of a job wrote, if the job says how."""
    if job is not None and job.remove_files is not None:
        job.remove_files(token)


def max_attempts(settings: Settings) -> int:
    """Return how often Spark tries a task: once on a local master, unless that says otherwise, as `local[2,4]` does.

    If the settings do not tell the master, return 1: a task then reports every error of its first attempt, and the
    caller gets that error, not Spark's.
    """
    master = settings("spark.master")
    local = re.fullmatch(r"local(\[[^,\]]*(,\s*(\d+))?\])?", master or "local")
    if local:
        return int(local[3] or 1)
    return int(settings("spark.task.maxFailures") or 4)


def _pickled(outcome: object) -> bytes:
    """Pickle an outcome as Spark does, classes of the caller's program by value; raise `WrongType` if it cannot be."""
    try:
        return pickle_by_value(outcome)
    except Exception as error:
        raise WrongType(
            f"the function's return value cannot be pickled, so it cannot leave the worker: {error}. Return a value "
            "such as a number, a text, a list, a dict or an Arrow table, and no reader, generator or lock"
        ) from error


def _is_transient(error: Exception) -> bool:
    """Return whether another attempt may succeed: a store was too busy or out of reach, or this machine's disk full."""
    return type(error) is StoreError or isinstance(error, StoreUnreachable | ConnectionError | TimeoutError)


def _attempt_number() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


def _pickle_if_it_comes_back(error: Exception) -> bytes | None:
    """Pickle an error as an outcome, or return None if it cannot be unpickled; its text then travels alone."""
    try:
        pickled = pickle_by_value(error)
        pickle.loads(pickled)
    except Exception:  # noqa: BLE001 - a foreign class may raise anything here
        return None
    return pickled
