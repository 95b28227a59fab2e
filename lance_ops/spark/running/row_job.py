"""Call a function with the rows of each partition of a DataFrame, in tasks whose outcomes alone reach the driver."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from lance_ops.core.arrow import scalar
from lance_ops.core.file_names import new_job_token
from lance_ops.core.records import dataclass
from lance_ops.runners import Job, JobProgress, ReportProgress
from lance_ops.spark.arrow_function import map_in_arrow
from lance_ops.spark.running.attempts import Attempts, Reported, max_attempts, outcomes_or_raise, remove_files
from lance_ops.spark.running.cluster_settings import settings_of
from lance_ops.spark.running.frame_job import FrameJob
from lance_ops.spark.running.partition_count import num_partitions
from lance_ops.spark.running.spark_job import SparkJob
from lance_ops.spark.session_kind import lacks_context

__all__ = ["map_rows"]

R = TypeVar("R")

_REPORTED = pa.schema([("reported", pa.binary())])


def map_rows(
    frame: DataFrame,
    function: Callable[[Iterator[pa.RecordBatch]], R],
    job: Job,
    discard: Callable[[R], None] | None = None,
    on_progress: ReportProgress | None = None,
) -> list[R]:
    """Call `function` with the batches of each partition, and return the outcomes in the order of the partitions.

    Partitions without rows are among them. Batches have the frame's names of columns, and the types that Spark gives
    its rows in Arrow. Errors of a task, and an interrupt, are handled as in `OnSpark.map`. An error of Spark, of the
    frame's own plan or of a cluster that gives up, is raised as it is, after the job's files were removed. Raises
    `TasksLost` if a partition reported nothing; through Spark Connect, only if one with a higher number reported.

    `on_progress` is told of Spark's tasks, those of the frame's own plan, too. Spark learns of later stages while it
    runs, so the number of tasks may grow.
    """
    session, token = frame.sparkSession, new_job_token()
    is_remote = lacks_context(session)
    attempts = Attempts(function, max_attempts(settings_of(session)), token)
    # Spark takes a dot in a name for a path, so the columns travel by number.
    numbered = frame.toDF(*map(str, range(len(frame.columns))))
    task = _RowTask(attempts, tuple(frame.columns))
    mapped = map_in_arrow(numbered, task, "reported binary", f"lance: {job}")
    progress = _TaskProgress(job, on_progress)
    try:
        if is_remote:
            rows = FrameJob(session, f"lance: {job}").collect(mapped, progress.tell)
        else:
            spark_job = SparkJob(session, f"lance: {job}")
            rows = spark_job.run(mapped.collect, lambda: progress.look(spark_job))
        known = num_partitions(mapped) or 0
        progress.end(len(rows))
    except BaseException:
        remove_files(job, token)
        raise
    reported: list[Reported] = [pickle.loads(row["reported"]) for row in rows]
    return outcomes_or_raise(reported, max(known, len(reported)), job, token, discard)


@dataclass
class _TaskProgress:
    """Tells how many tasks of Spark are done, while a job runs and when it has ended."""

    job: Job
    on_progress: ReportProgress | None
    begin: float = field(default_factory=time.monotonic)
    num_tasks: int = 0

    def look(self, spark_job: SparkJob) -> None:
        """Ask Spark, and tell it."""
        if self.on_progress is not None:
            self.tell(*spark_job.num_tasks())

    def tell(self, num_done: int, num_tasks: int) -> None:
        """Tell it of a job that runs: if all known tasks are done, Spark is about to begin another stage."""
        self.num_tasks = max(self.num_tasks, num_tasks)
        if num_tasks:
            self._tell(num_done, max(num_tasks, num_done + 1))

    def end(self, num_partitions: int) -> None:
        """Tell it of a job that has ended, whose last stage had this many partitions."""
        num_tasks = max(self.num_tasks, num_partitions)
        self._tell(num_tasks, num_tasks)

    def _tell(self, num_done: int, num_tasks: int) -> None:
        if self.on_progress is not None:
            self.on_progress(JobProgress(self.job, num_done, num_tasks, time.monotonic() - self.begin))


@dataclass(frozen=True)
class _RowTask(Generic[R]):
    """Reports what came of a partition's rows, as one row."""

    attempts: Attempts[Iterator[pa.RecordBatch], R]
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None  # it runs in a task alone
        named = (batch.rename_columns(list(self.names)) for batch in batches)
        reported = pickle.dumps(self.attempts.report(context.partitionId(), named))
        yield pa.record_batch([pa.repeat(scalar(reported, pa.binary()), 1)], _REPORTED)
