"""Run a job as a DataFrame: for a session of Spark Connect, which has no `sparkContext`.

Groups of tasks run as a DataFrame of their numbers. The groups travel in the function, so they must be small, as tasks
are. Such a task costs twice what one of an RDD does.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import field
from typing import Generic, TypeVar
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import spark_partition_id

from lance_ops.core.arrow import scalar
from lance_ops.core.records import dataclass
from lance_ops.spark.running.cluster_settings import settings_of
from lance_ops.spark.running.cluster_size import task_slots

__all__ = ["FrameJob"]

G = TypeVar("G")
R = TypeVar("R")

_SECONDS_BETWEEN_INTERRUPTS = 0.5
_OUTCOMES = pa.schema([("outcomes", pa.binary())])


@dataclass(frozen=True)
class FrameJob:
    """A job with a tag of its own, by which it is interrupted."""

    session: SparkSession
    tag: str = field(default_factory=lambda: f"lance-ops-{uuid4()}")

    def parallelism(self) -> int:
        """Return how many tasks the cluster runs at once, as `task_slots` does.

        Without a number of partitions, Spark cuts a range into as many as the cluster has cores at present.
        """
        present = self.session.range(4096).select(spark_partition_id()).distinct().count()
        return task_slots(present, settings_of(self.session))

    def run(self, worker: Callable[[Iterable[G]], Iterator[R]], groups: list[G]) -> list[R]:
        """Return the outcomes of all groups, each of them in a task; interrupt the job if the caller is interrupted."""
        numbers = self.session.range(0, len(groups), 1, len(groups))
        rows = self.collect(numbers.mapInArrow(_InTask(worker, groups), "outcomes binary"))
        return [outcome for row in rows for outcome in pickle.loads(row["outcomes"])]

    def collect(self, frame: DataFrame) -> list[Row]:
        """Return the rows of a frame; interrupt the job if the caller is interrupted."""

        def labelled() -> list[Row]:
            self.session.addTag(self.tag)  # it is this thread's alone
            return frame.collect()

        with ThreadPoolExecutor(1, thread_name_prefix="lance-ops-spark") as pool:
            running = pool.submit(labelled)
            try:
                return running.result()
            except BaseException:
                while not running.done():  # Spark interrupts nothing while it plans
                    self.session.interruptTag(self.tag)
                    wait([running], _SECONDS_BETWEEN_INTERRUPTS)
                raise


@dataclass(frozen=True)
class _InTask(Generic[G, R]):
    """Runs the groups whose numbers a task gets."""

    worker: Callable[[Iterable[G]], Iterator[R]]
    groups: list[G]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                outcomes = pickle.dumps(list(self.worker([self.groups[number]])))
                yield pa.record_batch([pa.repeat(scalar(outcomes, pa.binary()), 1)], _OUTCOMES)
