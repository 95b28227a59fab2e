"""Run a plan's tasks on the workers of a Spark session.

A Python task costs Spark about 27 ms even if it does nothing, so tasks are sent in a few groups for each core. Only the
function, the tasks and their outcomes travel: paths and small values, never rows.

An error of a task travels back as data, and the driver raises it again; `Attempts` says which errors fail the
attempt of a group, so that Spark repeats it. So it does with groups that the cluster lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Generic, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark import Accumulator
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lance_ops.core.errors import InvalidInput, TasksLost
from lance_ops.core.file_names import new_job_token
from lance_ops.core.records import dataclass
from lance_ops.runners import InThreads, Job, JobProgress, ReportProgress
from lance_ops.spark.running.attempts import Attempts, Reported, max_attempts, outcomes_or_raise, remove_files
from lance_ops.spark.running.cluster_settings import settings_of
from lance_ops.spark.running.cluster_size import wait_for_slots
from lance_ops.spark.running.frame_job import FrameJob, task_slots_by_query
from lance_ops.spark.running.group_dealing import deal
from lance_ops.spark.running.spark_job import SparkJob
from lance_ops.spark.session_kind import check_is_running, lacks_context

__all__ = ["WorkerTasks"]

T = TypeVar("T")
R = TypeVar("R")

_BYTES_OF_GROUP = 64 << 20
"""What a core reads in about a tenth of a second, a few times as long as Spark takes to start a task in Python."""


@dataclass(frozen=True)
class WorkerTasks:
    """Runs tasks on the workers of a Spark session, without DataFrames; `spark.OnSpark` says what users can expect."""

    session: SparkSession
    tasks_per_core: int = 3
    on_progress: ReportProgress | None = field(default=None, repr=False)
    least_bytes: int = 32 << 20

    def __post_init__(self) -> None:
        if self.tasks_per_core < 1:
            raise InvalidInput(f"tasks_per_core must be at least 1, not {self.tasks_per_core}")

    def num_slots(self) -> int:
        """Return how many tasks the cluster runs at once, or once it has all executors that it may ask for."""
        check_is_running(self.session)
        if lacks_context(self.session):
            return task_slots_by_query(self.session)
        return wait_for_slots(self.session)

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
        check_is_running(self.session)
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

    def _run_rdd(self, function: Callable[[T], R], tasks: Sequence[T], job: Job | None, token: str) -> list[Reported]:
        context, begin, settings = self.session.sparkContext, time.monotonic(), settings_of(self.session)
        weights = job.weights if job else ()
        num_groups = self._num_groups(wait_for_slots(self.session), job)
        groups = _weighed_groups(tasks, num_groups, weights)
        num_done, done_weight = context.accumulator(0), context.accumulator(0)
        worker = _Worker(Attempts(function, max_attempts(settings), token), _Done(num_done, done_weight))

        def report() -> None:
            if self.on_progress is not None:  # a group that Spark repeats counts its tasks again
                done = min(num_done.value, len(tasks))
                weight = min(done_weight.value, sum(weights)) if weights else None
                self.on_progress(JobProgress(job, done, len(tasks), time.monotonic() - begin, weight))

        spark_job = SparkJob(self.session, _description(job, len(tasks)))
        return spark_job.run(context.parallelize(groups, len(groups)).mapPartitions(worker).collect, report)

    def _run_frame(self, function: Callable[[T], R], tasks: Sequence[T], job: Job | None, token: str) -> list[Reported]:
        """Run the tasks without a context: progress counts whole groups, the smallest ones first."""
        begin, frame_job = time.monotonic(), FrameJob(self.session, _description(job, len(tasks)))
        num_groups = self._num_groups(task_slots_by_query(self.session), job)
        groups = _weighed_groups(tasks, num_groups, job.weights if job is not None else ())
        sizes = sorted(len(group) for group in groups)
        weights = sorted(sum(weight for _, weight, _ in group) for group in groups) if job and job.weights else None

        def report(num_done: int, _: int) -> None:
            if self.on_progress is not None:
                weight = None if weights is None else sum(weights[:num_done])
                done = sum(sizes[:num_done])
                self.on_progress(JobProgress(job, done, len(tasks), time.monotonic() - begin, weight))

        worker = _Worker(Attempts(function, max_attempts(settings_of(self.session)), token))
        reported = frame_job.run(worker, groups, report)
        report(len(groups), len(groups))
        return reported

    def _num_groups(self, num_slots: int, job: Job | None) -> int:
        """Return into how many groups to deal the tasks: at most `tasks_per_core` for each core.

        With known bytes, there are more groups than cores only if each has enough of them.
        """
        most, size_bytes = num_slots * self.tasks_per_core, None if job is None else job.known_bytes
        return most if size_bytes is None else min(most, max(num_slots, size_bytes // _BYTES_OF_GROUP))


@dataclass(frozen=True)
class _Done:
    """Counts on the driver what workers have done."""

    num_done: Accumulator[int]
    done_weight: Accumulator[int]

    def add(self, weight: int) -> None:
        """Count a task of this weight."""
        self.num_done.add(1)
        self.done_weight.add(weight)


def _description(job: Job | None, num_tasks: int) -> str:
    """Return what Spark shows of a job of tasks."""
    return f"lance: {job or 'tasks'}, " + ("1 task" if num_tasks == 1 else f"{num_tasks} tasks")


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

    def __call__(self, groups: Iterable[list[tuple[int, int, T]]]) -> Iterator[Reported]:
        for group in groups:
            for index, weight, task in group:
                reported = self.attempts.report(index, task)
                yield reported
                if not isinstance(reported, tuple):
                    break  # the plan has failed, so the rest of this group is skipped
                if self.done is not None:
                    self.done.add(weight)


def _reason(error: PySparkException | Py4JJavaError) -> str:
    """Return the first line of Spark's message about a failure, and the error that a Python worker ended with."""
    text = str(error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error).strip()
    reason = text.partition("\n")[0]
    _, has_trace, trace = text.rpartition("Traceback (most recent call last):")
    raised = next((line for line in trace.splitlines() if line and not line[0].isspace()), "") if has_trace else ""
    return f"{reason} {raised}".strip()
