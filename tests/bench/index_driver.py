"""`python -m tests.bench.index_driver [FRAGMENTS] [MILLIONS]`: the memory of a driver whose tasks build a B-tree.

The table has MILLIONS of rows in FRAGMENTS fragments. Its plan, its tasks and the commit are the real ones. The tasks
run in one other process, so the driver's memory is its own. It prints the messages and the peak of its memory.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lance_ops.maintenance.health import index_coverage
from lance_ops.maintenance.indexing import TaskSizes, create_scalar_index
from lance_ops.runners import Job
from tests.bench.linked_table import linked_table
from tests.bench.scale.many_fragments import peak_bytes

T = TypeVar("T")
R = TypeVar("R")


def main() -> None:
    """Build an index, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fragments", nargs="?", type=int, default=100_000)
    parser.add_argument("millions", nargs="?", type=int, default=100)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lance-ops-index-") as folder:
        for line in drive(folder, arguments.fragments, arguments.millions * 1_000_000):
            print(line, flush=True)


def drive(folder: str, num_fragments: int, num_rows: int, sizes: TaskSizes | None = None) -> Iterator[str]:
    """Yield a line for the table, for each step of tasks, and for the commit."""
    keys = np.random.default_rng(7).integers(0, 1 << 62, num_rows // num_fragments)
    snapshot = linked_table(f"{folder}/indexed.lance", pa.table({"key": keys}), num_fragments)
    yield f"before: {_peak_mb()} MB"
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as worker:
        runner = _InOneProcess(worker)
        made = create_scalar_index(snapshot, "key", "BTREE", runner=runner, sizes=sizes)
    yield from runner.lines
    (index,) = index_coverage(made)
    assert (index.num_indexed_rows, index.num_unindexed_rows) == (snapshot.num_rows, 0)
    yield f"commit: an index of {index.size_bytes >> 20:,} MB over {num_fragments:,} fragments; after: {_peak_mb()} MB"


class _InOneProcess:
    """Runs tasks in another process, and holds all of them and all outcomes as pickles, as a driver of Spark does."""

    def __init__(self, worker: ProcessPoolExecutor) -> None:
        self.lines: list[str] = []
        self._worker = worker

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Run the tasks one after the other, and note the sizes of the messages."""
        sent = [pickle.dumps((function, task)) for task in tasks]
        came = list(self._worker.map(_run, sent))
        outcomes: list[R] = [pickle.loads(each) for each in came]
        self.lines.append(
            f"{job}: {len(tasks):,} tasks, {sum(map(len, sent)):,} B sent, {sum(map(len, came)):,} B back; "
            f"after: {_peak_mb()} MB"
        )
        return outcomes


def _run(task: bytes) -> bytes:
    function, argument = pickle.loads(task)
    return pickle.dumps(function(argument))


def _peak_mb() -> int:
    return peak_bytes() >> 20


if __name__ == "__main__":
    main()
