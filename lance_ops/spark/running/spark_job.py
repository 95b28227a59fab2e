"""Run one Spark job under a label, so that its caller can watch it and be interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import field
from typing import TypeVar
from uuid import uuid4

from pyspark import SparkStageInfo
from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

from lance_ops.core.records import dataclass
from lance_ops.spark.running.cluster_settings import seconds_until_workers_end, settings_of

__all__ = ["SparkJob"]

R = TypeVar("R")

_SECONDS_BETWEEN_REPORTS = 0.5
_SECONDS_UNTIL_SPARK_TELLS = 5.0
"""How much later a loaded driver may tell that a task has ended."""


@dataclass(frozen=True)
class SparkJob:
    """A Spark job with a description, a group and a tag of its own.

    It runs in a thread of its own with the properties of the calling thread, such as the scheduler pool. If that thread
    has set a job group, the job stays in it, because whoever set it may cancel by it.
    """

    session: SparkSession
    description: str
    tag: str = field(default_factory=lambda: f"lance-ops-{uuid4()}")

    def run(self, action: Callable[[], R], report: Callable[[], None]) -> R:
        """Return what the action returns; call `report` twice a second meanwhile, and when it is done.

        If the calling thread is interrupted, cancel the job. After an interrupt or an error, go on when no task of the
        job runs any more: Spark stops the others when one fails.
        """
        running = self._start(action)
        try:
            while not wait([running], _SECONDS_BETWEEN_REPORTS).done:
                report()
            outcome = running.result()
            report()
        except BaseException:
            if not running.done():
                self._cancel(running)
            self._wait_for_tasks()
            raise
        return outcome

    def num_tasks(self) -> tuple[int, int]:
        """Return how many of Spark's tasks are done, and how many Spark knows: of later stages it learns in time."""
        stages = list(self._stages())
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)

    def _cancel(self, running: Future[R]) -> None:
        """Cancel the job until it ends: Spark knows none of this tag while it plans."""
        while not running.done():
            self.session.sparkContext.cancelJobsWithTag(self.tag)
            wait([running], _SECONDS_BETWEEN_REPORTS)

    def _start(self, action: Callable[[], R]) -> Future[R]:
        context, group = self.session.sparkContext, self._callers_group()

        @inheritable_thread_target(self.session)
        def labelled() -> R:
            context.setJobGroup(group or self.tag, self.description)
            context.addJobTag(self.tag)
            return action()

        pool = ThreadPoolExecutor(1, thread_name_prefix="lance-ops-spark")
        try:
            return pool.submit(labelled)
        finally:
            pool.shutdown(wait=False)

    def _callers_group(self) -> str | None:
        return self.session.sparkContext.getLocalProperty("spark.jobGroup.id")

    def _wait_for_tasks(self) -> None:
        """Wait until no task of the job runs, but no longer than Spark lets the worker of a killed task live."""
        seconds = seconds_until_workers_end(settings_of(self.session)) + _SECONDS_UNTIL_SPARK_TELLS
        deadline = time.monotonic() + seconds
        while self._num_running_tasks() and time.monotonic() < deadline:
            time.sleep(0.1)

    def _num_running_tasks(self) -> int:
        return sum(stage.numActiveTasks for stage in self._stages())

    def _stages(self) -> Iterator[SparkStageInfo]:
        """Yield the stages that Spark knows of the job, each once, and no other stage of the caller's group.

        PySpark finds jobs by their group alone, so this asks the tracker in the JVM.
        """
        tracker, found = self.session.sparkContext.statusTracker(), set[int]()
        for job_id in self.session.sparkContext._jsc.sc().statusTracker().getJobIdsForTag(self.tag):
            job = tracker.getJobInfo(job_id)
            found.update(() if job is None else job.stageIds)
        for stage_id in sorted(found):
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                yield stage
