"""Sorted runs of a B-tree: which need a merge, and how much of them a merge holds at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.errors import CorruptFile
from lance_ops.file import FileReader
from lance_ops.indices import MergeShare, PartialIndex
from lance_ops.indices.btree import runs as module
from lance_ops.indices.btree.layout import data_rows
from lance_ops.indices.btree.runs import join_runs, merge_runs, plan_run_merge, write_run
from lance_ops.store import MemoryStore

PAGE_ROWS = 8


def run_of(scratch: MemoryStore, values: list[int | None]) -> PartialIndex:
    rows = data_rows(pa.array(values, pa.int64()), pa.array(np.arange(len(values), dtype=np.uint64)))
    return write_run([rows], pa.int64(), PAGE_ROWS, scratch)


@pytest.mark.parametrize(
    ("runs", "merged"),
    [
        ([[1, 2, 3]], False),
        ([[None] * 8, [None] * 8, [1, 2]], False),
        ([[1] * 8, [1] * 8, [], [1] * 3], False),
        ([[1] * 7, [1] * 8], True),
        ([[2] * 8, [1] * 8], True),
        ([[1] * 8, [None] * 8], True),
        ([[], []], False),
    ],
    ids=["one", "whole pages in order", "equal keys", "half a page", "not in order", "nulls behind", "no rows"],
)
def test_only_runs_that_are_no_parts_of_an_index_are_merged(runs: list[list[int | None]], merged: bool) -> None:
    scratch = MemoryStore()
    planned = list(plan_run_merge([run_of(scratch, values) for values in runs], PAGE_ROWS, 5))
    assert sum(share.num_rows for share in planned) == (sum(map(len, runs)) if merged else 0)
    assert all(share.num_rows == PAGE_ROWS for share in planned[:-1])


def test_a_merge_reads_blocks_whose_sum_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    scratch, blocks = MemoryStore(), []
    runs = [run_of(scratch, list(range(start, 60_000, 3))) for start in range(3)]
    read = FileReader.read

    def counted(reader: FileReader, *arguments: object, **options: object) -> pa.Table:
        found: pa.Table = read(reader, *arguments, **options)  # type: ignore[arg-type]
        blocks.append(found.num_rows)
        return found

    monkeypatch.setattr(module, "_MERGE_BYTES", 3 * 300 * 17)
    monkeypatch.setattr(FileReader, "read", counted)
    [share] = plan_run_merge(runs, PAGE_ROWS, 60_000)
    assert share.row_bytes == 17
    merged = merge_runs(share, pa.int64(), PAGE_ROWS, scratch)
    assert max(blocks) == 300 and sum(blocks) == 60_000
    assert FileReader(scratch, merged.path).read()["values"].to_pylist() == list(range(60_000))


def test_runs_that_lost_rows_are_reported_and_leave_no_file() -> None:
    scratch = MemoryStore()
    run = run_of(scratch, [1, 2, 3])
    [share] = plan_run_merge([run, run_of(scratch, [2])], PAGE_ROWS, 8)
    before = {info.path for info in scratch.list()}
    with pytest.raises(CorruptFile, match="4 rows merged where there should be 5"):
        merge_runs(MergeShare(share.slices, 0, 5, 17), pa.int64(), PAGE_ROWS, scratch)
    assert {info.path for info in scratch.list()} == before


def test_runs_that_do_not_follow_each_other_are_not_joined() -> None:
    scratch, store = MemoryStore(), MemoryStore()
    runs = [run_of(scratch, [2, 3]), run_of(scratch, [1])]
    with pytest.raises(CorruptFile, match="do not follow each other"):
        join_runs(runs, pa.int64(), PAGE_ROWS, scratch, store)
    assert not list(store.list())


def test_the_driver_holds_two_keys_a_page() -> None:
    scratch = MemoryStore()
    run = run_of(scratch, list(range(8000)))
    assert run.summary.num_rows == 1000
    assert run.summary.nbytes <= 1000 * (8 + 8 + 4 + 4) + 64
    assert run.decoded_bytes == 8000 * 16
