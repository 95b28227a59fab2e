"""Load this library, and then fork Spark's Python workers.

Spark starts one daemon for each distinct environment of workers on an executor. Its own daemon imports almost nothing,
so each worker it forks imports the library again, and does so again after a minute without work. This one loads modules
and kernels once. Workers inherit them, and share their memory.

The first worker waits until its daemon serves. So the daemon first imports what it takes to read a table for a
DataFrame. It loads the rest once no worker has been forked for a while. A worker that is forked earlier, and writes or
runs a task of `map_fragments`, imports the rest by itself.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.pandas.serializers
import pyspark.worker
from pyspark.daemon import manager

from lance_ops import api
from lance_ops.core.lazy_import import freeze_objects
from lance_ops.kernels import load_kernels
from lance_ops.maintenance import ingest as ingestion
from lance_ops.reading import read_fragments_together, scan_fragments
from lance_ops.spark.data_source import LanceReader, LanceSource
from lance_ops.spark.on_spark import OnSpark
from lance_ops.spark.planned_read import planned_frame
from lance_ops.spark.worker_daemon.spark_archives import forget_archives

__all__ = ["NEEDED_BY_READS", "preload", "serve"]

NEEDED_BY_READS = (
    LanceReader,
    LanceSource,
    OnSpark,
    planned_frame,
    read_fragments_together,
    scan_fragments,
    pyspark.sql.pandas,
    pyspark.worker,
)
"""What workers import before they read: the modules of these."""

_ROWS = 2048
_SECONDS_WITHOUT_FORK = 2.0


def preload() -> None:
    """Load what tasks need that write: ingestion, and the modules and kernels that write and compact a small table.

    Kernels are loaded from the cache on disk. None of them runs threads of its own, so a fork is safe.
    """
    _ = ingestion.ingest  # the room loads it now
    load_kernels()
    dataset = api.write_dataset(_rows(), "memory://", max_rows_per_file=_ROWS // 2)
    dataset.to_table()  # of two short fragments, which are read together
    dataset.optimize.compact_files()


def _rows() -> pa.Table:
    """Return rows of common types, made without converting Python's values, which would import pandas."""
    integers, ends = pa.py_buffer(np.arange(_ROWS)), pa.py_buffer(np.arange(_ROWS + 1, dtype=np.int32))
    numbers = pa.Array.from_buffers(pa.int64(), _ROWS, [None, integers])
    texts = numbers.cast(pa.string())
    return pa.table(
        {
            "integers": numbers,
            "floats": pc.sqrt(numbers),
            "texts": pc.binary_join_element_wise(texts, texts, texts, texts),
            "lists": pa.ListArray.from_arrays(
                pa.Array.from_buffers(pa.int32(), _ROWS + 1, [None, ends]), numbers.cast(pa.float32())
            ),
            "nulls": pa.Array.from_buffers(pa.int64(), _ROWS, [pa.py_buffer(b"\x55" * (_ROWS // 8)), integers]),
        }
    )


def serve() -> None:
    """Serve Spark until it ends, and load the rest of the library meanwhile.

    If loading fails, this process prints the error, and workers import by themselves.
    """
    _call_after_forks(_load_the_rest)
    _prepare_for_forks()
    manager()


def _load_the_rest() -> None:
    try:
        preload()
    except Exception:  # noqa: BLE001 - a worker that starts slowly is better than none
        traceback.print_exc()
    _prepare_for_forks()


def _prepare_for_forks() -> None:
    """Freeze what workers inherit, and forget archives.

    Without the freeze, a collection in a worker would write to each inherited page, and so copy it.
    """
    freeze_objects()
    forget_archives()


def _call_after_forks(load: Callable[[], None]) -> None:
    """Call a function once, in this thread, when this process has not forked for some seconds.

    Spark's loop waits for requests in this thread, so an alarm interrupts it. Processes that are forked do not inherit
    the alarm.
    """
    daemon, is_waiting = os.getpid(), True

    def set_alarm() -> None:
        if is_waiting and os.getpid() == daemon:
            signal.setitimer(signal.ITIMER_REAL, _SECONDS_WITHOUT_FORK)

    def in_child() -> None:
        if os.getppid() == daemon:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def on_alarm(*_: object) -> None:
        nonlocal is_waiting
        is_waiting = False
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        load()

    signal.signal(signal.SIGALRM, on_alarm)
    os.register_at_fork(after_in_parent=set_alarm, after_in_child=in_child)
    set_alarm()
