"""`python -m tests.bench.index_driver [MILLIONS]`: the memory of a driver whose tasks build a B-tree of random keys.

Tasks run in one other process, which makes the keys itself instead of reading a table. The driver plans the merge,
joins the parts, and checks the index that came of it. It prints its peak memory before and after.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import resource
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lance_ops.core.schema import Field, Schema
from lance_ops.indices import INDEX_ROW, INDEX_VALUE, MergeShare, PartialIndex
from lance_ops.indices.btree import BTree
from lance_ops.indices.btree.index import BTreeIndex
from lance_ops.maintenance.indexing import TaskSizes
from lance_ops.store import open_store
from lance_ops.table import IndexMetadata

KIND = BTree()
FIELD: Field = Schema.from_arrow(pa.schema([pa.field("key", pa.int64())])).fields[0]
RUN_ROWS = TaskSizes().task_bytes // 16
_BATCH_ROWS = 1 << 20

T = TypeVar("T")
R = TypeVar("R")


def main() -> None:
    """Build an index and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("millions", nargs="?", type=int, default=100)
    num_rows = parser.parse_args().millions * 1_000_000
    with tempfile.TemporaryDirectory(prefix="lance-ops-index-") as folder:
        for line in build(folder, num_rows):
            print(line)


def build(folder: str, num_rows: int, run_rows: int = RUN_ROWS) -> Iterator[str]:
    """Yield a line for each step; check the index at the end."""
    scratch, store = (open_store(f"{folder}/{name}") for name in ("scratch", "index"))
    yield f"before: {_peak_mb()} MB"
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as worker:
        firsts = range(0, num_rows, run_rows)
        runs = [(f"{folder}/scratch", first, min(run_rows, num_rows - first)) for first in firsts]
        partials, line = _timed(worker, _train, runs)
        yield f"{line}; after: {_peak_mb()} MB"
        shares = KIND.plan_merge(partials, run_rows)
        merged, line = _timed(worker, _merge, [(f"{folder}/scratch", share) for share in shares])
        yield f"{line}; after: {_peak_mb()} MB"
    begin = time.perf_counter()
    files = KIND.assemble(merged, FIELD, scratch, store)
    size = sum(file.size_bytes or 0 for file in files)
    yield f"assemble: {size >> 20} MB in {time.perf_counter() - begin:.1f} s; after: {_peak_mb()} MB"
    _check(KIND.load(store, IndexMetadata(uuid.uuid4(), "key_idx", (0,), 1, None, KIND.details, files=files)), num_rows)


def _timed(worker: ProcessPoolExecutor, function: Callable[[T], R], tasks: Sequence[T]) -> tuple[list[R], str]:
    begin = time.perf_counter()
    outcomes = list(worker.map(function, tasks))
    sent, got = (sum(len(pickle.dumps(each)) for each in messages) for messages in (tasks, outcomes))
    seconds = time.perf_counter() - begin
    return outcomes, f"{function.__name__[1:]}: {len(tasks)} tasks, {sent} B sent, {got} B back, {seconds:.1f} s"


def _train(task: tuple[str, int, int]) -> PartialIndex:
    folder, first, num_rows = task
    return KIND.train_partial(_rows(first, num_rows), FIELD, open_store(folder))


def _merge(task: tuple[str, MergeShare]) -> PartialIndex:
    folder, share = task
    return KIND.merge_partials(share, FIELD, open_store(folder))


def _rows(first: int, num_rows: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(first)
    for start in range(first, first + num_rows, _BATCH_ROWS):
        addresses = np.arange(start, min(start + _BATCH_ROWS, first + num_rows), dtype=np.uint64)
        columns = [pa.array(random.integers(0, 1 << 62, len(addresses))), pa.array(addresses)]
        yield pa.record_batch(columns, names=[INDEX_VALUE, INDEX_ROW])


def _check(index: BTreeIndex | object, num_rows: int) -> None:
    assert isinstance(index, BTreeIndex)
    found = 0
    for batch in index.entries():  # which checks the order and the lookup
        found += batch.num_rows
    assert found == num_rows


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10  # pages of mapped files count


if __name__ == "__main__":
    main()
