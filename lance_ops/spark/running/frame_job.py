"""Run a job as a DataFrame: for a session of Spark Connect, which has no `sparkContext`.

Groups of tasks run as a DataFrame whose rows they are, one in each partition. A function of the rows would carry all
groups into every task, and a plan that carries them is refused above 128 MiB. Rows travel beside the plan, if they are
many bytes. Such a task costs twice what one of an RDD does.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import reduce
from typing import Any, Generic, TypeVar
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import spark_partition_id

from lance_ops.core.arrow import scalar
from lance_ops.core.records import dataclass
from lance_ops.spark.running.cluster_settings import seconds_until_workers_end, settings_of
from lance_ops.spark.running.cluster_size import expected_slots
from lance_ops.spark.running.pickling import pickle_by_value
from lance_ops.spark.session_kind import lacks_context

__all__ = ["FrameJob", "task_slots_by_query"]

G = TypeVar("G")
R = TypeVar("R")

_SECONDS_BETWEEN_REPORTS = 0.5
_OUTCOMES = pa.schema([("outcomes", pa.binary())])
_GROUPS = pa.schema([("number", pa.int32()), ("pickled", pa.binary())])
_MOST_BYTES_OF_FRAME = 32 << 20
"""Spark sends the rows of one DataFrame to its tasks in a few messages, and each of them has at most 128 MiB."""

ReportTasks = Callable[[int, int], None]
"""Is told how many tasks of Spark are done, of how many that Spark knows."""


@dataclass(frozen=True)
class FrameJob:
    """A job with a tag of its own, by which it is interrupted. The tag begins with the description."""

    session: SparkSession
    description: str
    number: str = field(default_factory=lambda: str(uuid4()))

    @property
    def tag(self) -> str:
        """What Spark shows of the job; a comma would end a tag."""
        return f"{self.description.replace(',', ';')} ({self.number})"

    def run(self, worker: Callable[[Iterable[G]], Iterator[R]], groups: list[G], report: ReportTasks) -> list[R]:
        """Return the outcomes of all groups, each of them in a task; see `collect`."""
        frames = [self.session.createDataFrame(part) for part in _tables_of(groups)]
        spread = reduce(lambda rows, more: rows.union(more), frames).repartitionById(len(groups), "number")
        rows = self._collect(
            spread.mapInArrow(_InTask(worker), "outcomes binary"), report, _WatchedTasks(of_rows=False)
        )
        return [outcome for row in rows for outcome in pickle.loads(row["outcomes"])]

    def collect(self, frame: DataFrame, report: ReportTasks) -> list[Row]:
        """Return the rows of a frame; call `report` twice a second meanwhile.

        If the calling thread is interrupted, interrupt the job. After an interrupt or an error, go on when no worker of
        the job lives any more. A client is not told when a worker ends. So it waits as long as Spark lets the worker
        of a killed task live. It does not wait after an error of the plan, whose tasks have not begun.
        """
        return self._collect(frame, report, _WatchedTasks())

    def _collect(self, frame: DataFrame, report: ReportTasks, watched: _WatchedTasks) -> list[Row]:
        def labelled() -> list[Row]:
            self.session.addTag(self.tag)  # it is this thread's alone
            with watched.of(self.session):
                return frame.collect()

        with ThreadPoolExecutor(1, thread_name_prefix="lance-ops-spark") as pool:
            running = pool.submit(labelled)
            try:
                while not wait([running], _SECONDS_BETWEEN_REPORTS).done:
                    report(watched.num_done, watched.num_tasks)
                return running.result()
            except AnalysisException:
                raise
            except BaseException:
                self._interrupt(running)
                if lacks_context(self.session):
                    time.sleep(seconds_until_workers_end(settings_of(self.session)))
                raise

    def _interrupt(self, running: Future[list[Row]]) -> None:
        """Interrupt the job until it ends: Spark interrupts nothing while it plans."""
        while not running.done():
            self.session.interruptTag(self.tag)
            wait([running], _SECONDS_BETWEEN_REPORTS)


def task_slots_by_query(session: SparkSession) -> int:
    """Return how many tasks the cluster of a session without a context runs at once, as `expected_slots` does.

    Without a number of partitions, Spark cuts a range into as many as the cluster has cores at present, or as
    `spark.default.parallelism` says. That number counts only if no other setting tells the cores.
    """
    settings = settings_of(session)
    stated = expected_slots(0, settings)
    if stated and settings("spark.default.parallelism"):
        return stated
    present = session.range(4096).select(spark_partition_id()).distinct().count()
    return max(present, stated)


class _WatchedTasks:
    """How many tasks of one thread's query are done, as Spark Connect tells while the query runs.

    Unless `of_rows`, tasks of the last stage alone count. The first stage deals rows out, and is never the last.
    """

    def __init__(self, *, of_rows: bool = True) -> None:
        self.num_done = self.num_tasks = 0
        self._of_rows = of_rows
        self._thread = 0

    @contextmanager
    def of(self, session: SparkSession) -> Iterator[None]:
        """Watch what this thread runs in the block; a session with a context tells nothing in this way."""
        if not lacks_context(session):
            yield
            return
        self._thread = threading.get_ident()
        session.registerProgressHandler(self)  # type: ignore[arg-type]  # whose class a client alone can import
        try:
            yield
        finally:
            with suppress(ValueError):  # the user has cleared all handlers of the session
                session.removeProgressHandler(self)  # type: ignore[arg-type]  # as above

    def __call__(self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        """Take note; the session calls this in the thread of a query, also of other queries of its own."""
        if threading.get_ident() == self._thread and stages is not None:
            counted = sorted(stages, key=lambda stage: int(stage.stage_id))
            if not self._of_rows:
                counted = counted[1:][-1:]
            counts = [(stage.num_completed_tasks, stage.num_tasks) for stage in counted]
            self.num_done, self.num_tasks = (sum(each) for each in zip(*counts, strict=True)) if counts else (0, 0)


def _tables_of(groups: Iterable[object]) -> Iterator[pa.Table]:
    """Yield the groups with their numbers as tables, none of which has many more bytes than one message may have."""
    numbers, pickled = list[int](), list[bytes]()
    size = 0
    for number, group in enumerate(groups):
        numbers.append(number)
        pickled.append(pickle_by_value(group))
        size += len(pickled[-1])
        if size >= _MOST_BYTES_OF_FRAME:
            yield pa.table([numbers, pickled], schema=_GROUPS)
            numbers, pickled, size = [], [], 0
    if numbers:
        yield pa.table([numbers, pickled], schema=_GROUPS)


@dataclass(frozen=True)
class _InTask(Generic[G, R]):
    """Runs the groups that a task gets."""

    worker: Callable[[Iterable[G]], Iterator[R]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for group in batch.column(1).to_pylist():
                outcomes = pickle.dumps(list(self.worker([pickle.loads(group)])))
                yield pa.record_batch([pa.repeat(scalar(outcomes, pa.binary()), 1)], _OUTCOMES)
