"""Call a function with the rows of each partition of a DataFrame, in tasks whose outcomes alone reach the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from lance_ops.core.arrow import scalar
from lance_ops.core.file_names import new_job_token
from lance_ops.core.records import dataclass
from lance_ops.runners import Job
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
) -> list[R]:
    """Call `function` with the batches of each partition, and return the outcomes in the order of the partitions.

    Partitions without rows are among them. Batches have the frame's names of columns, and the types that Spark gives
    its rows in Arrow. Errors of a task, and an interrupt, are handled as in `OnSpark.map`. An error of Spark, of the
    frame's own plan or of a cluster that gives up, is raised as it is, after the job's files were removed. Raises
    `TasksLost` if a partition reported nothing; through Spark Connect, only if one with a higher number reported.
    """
    session, token = frame.sparkSession, new_job_token()
    is_remote = lacks_context(session)
    attempts = Attempts(function, max_attempts(settings_of(session)), token)
    # Spark takes a dot in a name for a path, so the columns travel by number.
    numbered = frame.toDF(*map(str, range(len(frame.columns))))
    task = _RowTask(attempts, tuple(frame.columns))
    mapped = map_in_arrow(numbered, task, "reported binary", f"lance: {job}")
    try:
        if is_remote:
            rows = FrameJob(session).collect(mapped)
        else:
            rows = SparkJob(session, f"lance: {job}").run(mapped.collect, lambda: None)
        known = num_partitions(mapped) or 0
    except BaseException:
        remove_files(job, token)
        raise
    reported: list[Reported] = [pickle.loads(row["reported"]) for row in rows]
    return outcomes_or_raise(reported, max(known, len(reported)), job, token, discard)


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
