"""Run a plan's tasks on a Spark cluster.

A Python task costs Spark about 27 ms even if it does nothing, so tasks are sent in a few groups for each core. Only the
function, the tasks and their outcomes travel: paths and small values, never rows.

An error of a task does not fail the Spark job. It travels back as data, and the driver raises it again. Only an error
that another attempt may not meet, such as a store that is too busy, fails the group's attempt, and Spark repeats it as
often as it may, elsewhere if it can. So it does with groups that the cluster lost. Files of a lost attempt are not
among the outcomes and are never committed.
"""

from __future__ import annotations

import pickle
import re
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Generic, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark import Accumulator, SparkContext, TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lance_ops.core.errors import InvalidInput, LanceOpsError, StoreError, TasksLost
from lance_ops.core.file_names import file_names_of_job, new_job_token
from lance_ops.core.records import dataclass
from lance_ops.runners import InThreads, Job, JobProgress, ReportProgress
from lance_ops.spark import staging
from lance_ops.spark.tasks.frame_job import FrameJob, lacks_context
from lance_ops.spark.tasks.group_dealing import deal
from lance_ops.spark.tasks.spark_job import SparkJob

if TYPE_CHECKING:
    from lance_ops.core.versions import FileVersion
    from lance_ops.snapshot import Snapshot

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

    def error(self, num_tasks: int, job: Job | None) -> Exception:
        """Return the error with a note that names the task."""
        if self.pickled is None:
            error: Exception = LanceOpsError(self.summary)
        else:
            error = pickle.loads(self.pickled)
        work = "" if job is None else f" of {str(job)!r}"
        error.add_note(f"raised in a Spark worker by task {self.index + 1} of {num_tasks}{work}:\n{self.trace}")
        return error


@dataclass(frozen=True)
class OnSpark:
    """Runs tasks on the workers of a Spark session, in `tasks_per_core` groups per core.

    `map` may be called in any thread. Its Spark job has the text of `job` as its description, and a group of its own
    unless the thread has set one. `on_progress` is called twice a second, in the thread that called `map`.

    A job whose plan says that its tasks read less than `least_bytes` together runs in threads of this process: Spark
    would take longer to start the tasks than they take. With `least_bytes=0` all tasks run on the workers.

    A session of Spark Connect has no context: its jobs have no description, an error that may pass is not repeated, and
    `on_progress` is called when all tasks are done.
    """

    session: SparkSession
    tasks_per_core: int = 3
    on_progress: ReportProgress | None = field(default=None, repr=False)
    least_bytes: int = 32 << 20

    def __post_init__(self) -> None:
        if self.tasks_per_core < 1:
            raise InvalidInput(f"tasks_per_core must be at least 1, not {self.tasks_per_core}")

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Call `function` with each task on the cluster, and return the outcomes in the order of the tasks.

        If a task fails, the rest of its group is skipped and the other groups run to their end; see `Runner.map`. An
        interrupt of the calling thread cancels the Spark job. Then, and if Spark could not run a group or somebody
        cancelled its job, which raises `TasksLost`, no outcome reaches the driver. The files of a job that failed are
        found by the token in their names. Those of a lost attempt of a job that succeeded are left to clean-up.
        """
        if not tasks:
            return []
        if job is not None and job.size_bytes is not None and job.size_bytes < self.least_bytes:
            return InThreads(on_progress=self.on_progress).map(function, tasks, job, discard)
        token = new_job_token()
        try:
            reported = (self._run_frame if lacks_context(self.session) else self._run_rdd)(function, tasks, job, token)
        except (PySparkException, Py4JJavaError) as error:
            _remove_files(job, token)
            raise TasksLost(f"Spark gave the tasks up: {_reason(error)}") from error
        except BaseException:  # an interrupt, after which no task runs any more
            _remove_files(job, token)
            raise
        failures = [outcome for outcome in reported if isinstance(outcome, _Failure)]
        outcomes = dict(
            sorted(
                (outcome for outcome in reported if not isinstance(outcome, _Failure)), key=lambda numbered: numbered[0]
            )
        )
        if failures:
            if discard is not None:
                for outcome in outcomes.values():
                    discard(outcome)
            _remove_files(job, token)  # of attempts that failed or were lost
            raise min(failures, key=lambda failure: failure.index).error(len(tasks), job)
        return [outcomes[index] for index in range(len(tasks))]

    def _run_rdd(
        self, function: Callable[[T], R], tasks: Sequence[T], job: Job | None, token: str
    ) -> list[tuple[int, R] | _Failure]:
        context, begin = self.session.sparkContext, time.monotonic()
        weights = job.weights if job else ()
        groups = _weighed_groups(tasks, context.defaultParallelism * self.tasks_per_core, weights)
        num_done, done_weight = context.accumulator(0), context.accumulator(0)
        worker = _Worker(function, _Done(num_done, done_weight), max_attempts(context), token)

        def report() -> None:
            if self.on_progress is not None:  # a group that Spark repeats counts its tasks again
                done = min(num_done.value, len(tasks))
                weight = min(done_weight.value, sum(weights)) if weights else None
                self.on_progress(JobProgress(job, done, len(tasks), time.monotonic() - begin, weight))

        count = "1 task" if len(tasks) == 1 else f"{len(tasks)} tasks"
        spark_job = SparkJob(self.session, f"lance: {job or 'tasks'}, {count}")
        return spark_job.run(context.parallelize(groups, len(groups)).mapPartitions(worker).collect, report)

    def _run_frame(
        self, function: Callable[[T], R], tasks: Sequence[T], job: Job | None, token: str
    ) -> list[tuple[int, R] | _Failure]:
        """Run the tasks without a context: without a description, and progress is told when all are done."""
        begin, frame_job = time.monotonic(), FrameJob(self.session)
        groups = _weighed_groups(
            tasks, frame_job.parallelism() * self.tasks_per_core, job.weights if job is not None else ()
        )
        # A client does not see how often Spark tries a task, so an error that may pass fails the job, too.
        worker = _Worker(function, None, 1, token)
        reported = frame_job.run(worker, groups)
        if self.on_progress is not None:
            weight = sum(job.weights) if job is not None and job.weights else None
            self.on_progress(JobProgress(job, len(tasks), len(tasks), time.monotonic() - begin, weight))
        return reported

    def takes(self, data: object) -> bool:
        """Return whether the data is a DataFrame, whose rows are on the cluster."""
        return isinstance(data, DataFrame)

    def write_frame(
        self,
        frame: DataFrame,
        like: Snapshot,
        uri: str,
        storage_options: Mapping[str, str],
        columns: Sequence[str] = (),
    ) -> None:
        """Write a DataFrame as a new dataset with the columns of `like` that it has; see `staging.write_frame`."""
        staging.write_frame(self.session, frame, like, uri, storage_options, columns)

    def write_row_values(
        self,
        frame: DataFrame,
        key: str,
        names: Sequence[str],
        like: Snapshot | None,
        uri: str,
        storage_options: Mapping[str, str],
        version: FileVersion,
    ) -> None:
        """Write values for rows that the column `key` names; see `staging.write_row_values`."""
        staging.write_row_values(self.session, frame, key, names, like, uri, storage_options, version)


@dataclass(frozen=True)
class _Done:
    """Counts on the driver what workers have done."""

    num_done: Accumulator[int]
    done_weight: Accumulator[int]

    def add(self, weight: int) -> None:
        """Count a task of this weight."""
        self.num_done.add(1)
        self.done_weight.add(weight)


def _weighed_groups(tasks: Sequence[T], num_groups: int, weights: Sequence[int]) -> list[list[tuple[int, int, T]]]:
    """Deal the tasks out, each with its number and its weight: a worker gets the weights of its own tasks alone."""
    return [
        [(index, weights[index] if weights else 0, task) for index, task in group]
        for group in deal(tasks, num_groups, weights)
    ]


@dataclass(frozen=True)
class _Worker(Generic[T, R]):
    """What a Spark worker does with groups of numbered tasks."""

    function: Callable[[T], R]
    done: _Done | None
    max_attempts: int
    token: str

    def __call__(self, groups: Iterable[list[tuple[int, int, T]]]) -> Iterator[tuple[int, R] | _Failure]:
        for group in groups:
            for index, weight, task in group:
                try:
                    with file_names_of_job(self.token):
                        outcome = self.function(task)
                    yield index, outcome
                except Exception as error:
                    if _is_transient(error) and _attempt_number() + 1 < self.max_attempts:
                        raise
                    yield _Failure.of(index, error)
                    break  # the plan has failed, so the rest of this group is skipped
                if self.done is not None:
                    self.done.add(weight)


def _remove_files(job: Job | None, token: str) -> None:
    if job is not None and job.remove_files is not None:
        job.remove_files(token)


def max_attempts(context: SparkContext) -> int:
    """Return how often Spark tries a task: once on a local master, unless that says otherwise, as `local[2,4]` does."""
    local = re.fullmatch(r"local(\[[^,\]]*(,\s*(\d+))?\])?", context.master or "")
    if local:
        return int(local[3] or 1)
    return int(context.getConf().get("spark.task.maxFailures", "4"))


def _is_transient(error: Exception) -> bool:
    """Return whether another attempt may succeed: a store was too busy or out of reach, or this machine's disk full."""
    return type(error) is StoreError or isinstance(error, ConnectionError | TimeoutError)


def _attempt_number() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


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
