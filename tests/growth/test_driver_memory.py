"""The memory of a driver grows by few bytes with each fragment, whatever the tasks do with its rows.

Plans and commits are the real ones. Stand-ins for tasks report what such tasks report, and the files of all fragments
are one file under many names.
"""

from __future__ import annotations

import gc
import pickle
import tracemalloc
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.changing.merge_insert import MergeRequest, WhenMatched
from lance_ops.changing.merge_insert.by_tasks import (
    SourceRows,
    plan_distributed_merge,
    prepare_distributed_merge,
)
from lance_ops.indices import PartialIndex, btree
from lance_ops.indices.btree.layout import lookup_of
from lance_ops.maintenance.indexing import TaskSizes, create_scalar_index
from lance_ops.maintenance.indexing.task_build import MergeTask, RowsTask
from lance_ops.runners import Job
from lance_ops.snapshot import Snapshot
from lance_ops.table import IndexFile
from lance_ops.transactions import Append
from lance_ops.writing import commit_operation
from tests.bench.merge_driver import MergeStandin

T = TypeVar("T")
R = TypeVar("R")

WARM_UP = 1_200
COUNTS = (2_000, 4_000, 8_000)
"""Fragments of the tables: of the one by which modules are loaded, and of those that are measured."""
ROWS_OF_FRAGMENT = 1000
SOURCE_ROWS = 1 << 20
WORST_CASE_FRAGMENTS = 100_000
WORST_CASE_BYTES = 1 << 30
"""What a driver may hold for that many fragments, of a thousand keys each."""


def opened(name: str) -> Snapshot:
    return lance_ops.dataset(f"memory://{name}").snapshot


def make_table(name: str, num_fragments: int, rows_of_fragment: int) -> str:
    """Make a table whose fragments have the same file under names of their own."""
    rows = pa.table({"id": pa.array(range(rows_of_fragment), pa.int64()), "value": [0.5] * rows_of_fragment})
    made = lance_ops.write_dataset(rows, f"memory://{name}").snapshot
    (first,) = made.fragments
    names = [f"{number:024b}{number:026x}.lance" for number in range(1, num_fragments)]
    for each in names:
        made.store.copy(f"data/{first.files[0].path}", f"data/{each}")
    commit_operation(made, Append(tuple(replace(first, files=(replace(first.files[0], path=each),)) for each in names)))
    return name


def peak_bytes(act: Callable[[], object]) -> int:
    """Return how many bytes a call holds at its peak."""
    gc.collect()
    tracemalloc.start()
    try:
        result = act()
        peak = tracemalloc.get_traced_memory()[1]
        del result
        return peak
    finally:
        tracemalloc.stop()


def check_memory(act: Callable[[int], object], most_per_fragment: int) -> None:
    """Check that memory grows in proportion to the fragments, by few bytes for each, and what 100,000 then take.

    This is the memory of Python and numpy. Arrow's buffers hold a key for each page of an index besides.
    """
    act(WARM_UP)  # loads modules
    few, some, many = (peak_bytes(partial(act, count)) for count in COUNTS)
    per_fragment = (many - some) / (COUNTS[2] - COUNTS[1])
    assert 0 < per_fragment < most_per_fragment
    assert many - some < 2.5 * (some - few)  # memory that grows with the square adds four times as much
    assert many + per_fragment * (WORST_CASE_FRAGMENTS - COUNTS[2]) < WORST_CASE_BYTES


class IndexStandin:
    """Reports for each task of a B-tree what a task that was run would report, and writes nothing."""

    def __init__(self, page_rows: int = 4096) -> None:
        self.num_tasks: list[int] = []
        self._page_rows = page_rows

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Hold all tasks as pickles and then all outcomes as pickles, as a driver of Spark does."""
        self.num_tasks.append(len(tasks))
        sent = [pickle.dumps(task) for task in tasks]
        came = [pickle.dumps(self._outcome(pickle.loads(task), place)) for place, task in enumerate(sent)]
        return [pickle.loads(outcome) for outcome in came]

    def _outcome(self, task: Any, place: int) -> PartialIndex:
        if isinstance(task, RowsTask):
            return self._run(sum(stop - start for _, start, stop in task.row_ranges), 0)
        assert isinstance(task, MergeTask)
        return self._run(task.share.num_rows, place)

    def _run(self, num_rows: int, place: int) -> PartialIndex:
        """Return a run of ascending keys; those of the merged run after it are greater."""
        firsts = np.arange(0, num_rows, self._page_rows)
        lasts = np.minimum(firsts + self._page_rows, num_rows) - 1
        begin = place << 40
        summary = lookup_of(pa.array(begin + firsts), pa.array(begin + lasts), 0, num_rows, self._page_rows)
        return PartialIndex(num_rows, summary, f"{uuid.uuid4()}.lance", 16 * num_rows)


@pytest.fixture
def tables() -> dict[int, str]:
    """Tables of a thousand rows in each fragment."""
    return {count: make_table(f"driver-{uuid.uuid4().hex}", count, ROWS_OF_FRAGMENT) for count in (WARM_UP, *COUNTS)}


SIZES = TaskSizes(least_bytes=1, task_bytes=4 << 20)


def test_an_index_of_many_fragments(tables: dict[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[int] = []

    def join(runs: Sequence[PartialIndex], *_: object) -> tuple[IndexFile, ...]:
        joined.append(sum(run.num_rows for run in runs))
        return ()

    monkeypatch.setattr(btree, "join_runs", join)

    def build(count: int) -> None:
        runner = IndexStandin()
        create_scalar_index(opened(tables[count]), "id", "BTREE", runner=runner, sizes=SIZES)
        assert joined.pop() == count * ROWS_OF_FRAGMENT
        assert len(runner.num_tasks) == 2 and min(runner.num_tasks) > 1

    check_memory(build, 3500)


def test_a_merge_into_many_fragments(tables: dict[int, str]) -> None:
    def merge(count: int) -> None:
        target = opened(tables[count])
        given = opened(sources[count])
        plan = plan_distributed_merge(target, MergeRequest(("id",), WhenMatched.UPDATE), SourceRows.of(given))
        assert plan.num_buckets > 1
        runner = MergeStandin(plan)
        prepared = prepare_distributed_merge(plan, runner)
        assert len(commit_operation(target, prepared.operation).fragments) == count + len(given.fragments)

    sources = {
        count: make_table(f"source-{uuid.uuid4().hex}", -(-count * ROWS_OF_FRAGMENT // SOURCE_ROWS), SOURCE_ROWS)
        for count in (WARM_UP, *COUNTS)
    }
    check_memory(merge, 6000)
