"""Run a plan's tasks on a Spark cluster.

A Python task costs Spark about 27 ms even if it does nothing, so tasks are sent in a few groups for each core. Only the
function, the tasks and their outcomes travel: paths and small values, never rows.

An error of a task travels back as data, and the driver raises it again; `running.Attempts` says which errors fail the
attempt of a group, so that Spark repeats it. So it does with groups that the cluster lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Generic, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark import Accumulator
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lance_ops.core.errors import InvalidInput, TasksLost
from lance_ops.core.file_names import new_job_token
from lance_ops.core.records import dataclass
from lance_ops.runners import InThreads, Job, JobProgress, ReportProgress
from lance_ops.spark import staging
from lance_ops.spark.running import (
    Attempts,
    FrameJob,
    Reported,
    SparkJob,
    max_attempts,
    outcomes_or_raise,
    remove_files,
    task_slots,
)
from lance_ops.spark.session_kind import lacks_context
from lance_ops.spark.tasks.group_dealing import deal

if TYPE_CHECKING:
    from lance_ops.core.versions import FileVersion
    from lance_ops.snapshot import Snapshot

__all__ = ["OnSpark"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class OnSpark:
    """Runs tasks on the workers of a Spark session, in `tasks_per_core` groups per core.

    With dynamic allocation, it counts the cores of all executors that the session may ask for.

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
            remove_files(job, token)
            raise TasksLost(f"Spark gave the tasks up: {_reason(error)}") from error
        except BaseException:  # an interrupt, after which no task runs any more
            remove_files(job, token)
            raise
        return outcomes_or_raise(reported, len(tasks), job, token, discard)

    def _run_rdd(
        self, function: Callable[[T], R], tasks: Sequence[T], job: Job | None, token: str
    ) -> list[Reported[R]]:
        context, begin = self.session.sparkContext, time.monotonic()
        weights = job.weights if job else ()
        groups = _weighed_groups(tasks, task_slots(context) * self.tasks_per_core, weights)
        num_done, done_weight = context.accumulator(0), context.accumulator(0)
        worker = _Worker(Attempts(function, max_attempts(context), token), _Done(num_done, done_weight))

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
    ) -> list[Reported[R]]:
        """Run the tasks without a context: without a description, and progress is told when all are done."""
        begin, frame_job = time.monotonic(), FrameJob(self.session)
        groups = _weighed_groups(
            tasks, frame_job.parallelism() * self.tasks_per_core, job.weights if job is not None else ()
        )
        # A client does not see how often Spark tries a task, so an error that may pass fails the job, too.
        worker = _Worker(Attempts(function, 1, token))
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

    attempts: Attempts[T, R]
    done: _Done | None = None

    def __call__(self, groups: Iterable[list[tuple[int, int, T]]]) -> Iterator[Reported[R]]:
        for group in groups:
            for index, weight, task in group:
                reported = self.attempts.report(index, task)
                yield reported
                if not isinstance(reported, tuple):
                    break  # the plan has failed, so the rest of this group is skipped
                if self.done is not None:
                    self.done.add(weight)


def _reason(error: PySparkException | Py4JJavaError) -> str:
    """Return Spark's message about a failure, without the Java stack."""
    text = str(error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error)
    return text.strip().partition("\n")[0]
