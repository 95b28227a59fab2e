"""The reference uses an index that tasks have built, extended and remapped."""

from __future__ import annotations

from dataclasses import replace

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.maintenance.indexing import TaskSizes, create_scalar_index, optimize_indices, remap_segment
from lance_ops.runners import InThreads
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows import RowAddressMap

pytestmark = pytest.mark.interop

SIZES = TaskSizes(least_bytes=1, least_remap_bytes=1, task_bytes=64 << 10)


def rows(start: int, stop: int) -> pa.Table:
    ids = np.arange(start, stop)
    keys = ids * 7919 % 5003
    texts = pa.array([f"name {key}" for key in keys.tolist()], mask=ids % 13 == 0)
    return pa.table({"id": ids, "key": pa.array(keys, mask=ids % 11 == 0), "text": texts})


def check(uri: str) -> None:
    theirs, ours = lance.dataset(uri), lance_ops.dataset(uri)
    for predicate in ("key = 77", "key IS NULL", "key > 4990", "text = 'name 77'", "text < 'name 1007'"):
        assert "ScalarIndexQuery" in theirs.scanner(filter=predicate).explain_plan()
        expected = ours.to_table(["id"], filter=predicate, use_scalar_index=False)["id"].to_pylist()
        assert sorted(theirs.to_table(["id"], filter=predicate)["id"].to_pylist()) == sorted(expected) != []
        assert sorted(ours.to_table(["id"], filter=predicate)["id"].to_pylist()) == sorted(expected)


def test_the_reference_finds_rows_by_what_tasks_wrote(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, remaps = InThreads(2), []
    made = lance_ops.write_dataset(rows(0, 20_000), dataset_uri, max_rows_per_file=4500)
    made.delete("id % 23 = 0")
    snapshot = made.snapshot
    for column in ("key", "text"):
        snapshot = create_scalar_index(snapshot, column, "BTREE", runner=runner, sizes=SIZES)
    check(dataset_uri)

    lance.write_dataset(rows(20_000, 29_000), dataset_uri, mode="append", max_rows_per_file=4000)
    optimize_indices(lance_ops.dataset(dataset_uri).snapshot, runner=runner, sizes=replace(SIZES, max_tasks=7))
    check(dataset_uri)
    assert lance.dataset(dataset_uri).stats.index_stats("key_idx")["num_unindexed_rows"] == 0

    def by_tasks(
        current: Snapshot, segment: IndexMetadata, moves: RowAddressMap, store_out: Store, given: InThreads
    ) -> tuple[IndexFile, ...]:
        remaps.append(segment.name)
        return remap_segment(current, segment, moves, store_out, given, SIZES)

    monkeypatch.setattr("lance_ops.maintenance.compaction.index_remap.remap_segment", by_tasks)
    lance_ops.dataset(dataset_uri).optimize.compact_files(target_rows_per_fragment=10_000, runner=runner)
    assert sorted(remaps) == ["key_idx", "text_idx"]
    check(dataset_uri)
