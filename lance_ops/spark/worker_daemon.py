"""Fork Spark's Python workers from a process that has loaded this library: `spark.python.daemon.module`.

Spark starts one daemon for each distinct environment of workers on an executor. Its own daemon imports almost nothing,
so each worker it forks imports the library again, and does so again after a minute without work. This one loads modules
and kernels once. Workers inherit them, and share their memory.

The processes in which Spark plans a query, and those that commit a write, do not heed the setting.
"""

from __future__ import annotations

import gc
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.daemon import manager

from lance_ops.api import write_dataset
from lance_ops.maintenance.ingest import ingest
from lance_ops.spark.data_source import LanceSource
from lance_ops.spark.fragment_map import map_fragments
from lance_ops.spark.tasks import OnSpark

__all__ = ["NEEDED_BY_TASKS", "main", "preload"]

NEEDED_BY_TASKS = (LanceSource, OnSpark, ingest, map_fragments)
"""What tasks are unpickled from, beside what `preload` uses."""

_ROWS = 2048


def preload() -> None:
    """Write, read and compact a small table in memory, as tasks do.

    This imports what tasks import, and loads from the cache on disk the kernels that they call. No kernel runs threads
    of its own, so a fork is safe.
    """
    dataset = write_dataset(_rows(), "memory://", max_rows_per_file=_ROWS // 2)
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


def main() -> None:
    """Load the library, then serve Spark. A failure of the former is only told: workers then import by themselves."""
    try:
        preload()
    except Exception:  # noqa: BLE001 - a worker that starts slowly is better than none
        traceback.print_exc()
    gc.freeze()  # a collection in a worker would otherwise write to, and so copy, each inherited page
    manager()


if __name__ == "__main__":
    main()
