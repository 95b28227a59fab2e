"""Scans: limits, fragments, old manifests, memory and open files."""

import os
import pickle
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.changing.deletion import find_rows, plan_deletion
from lance_ops.errors import CorruptFile, InvalidInput, VersionNotFound
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, plan_compaction
from lance_ops.reading.filters import bind_filter
from lance_ops.reading.scan_execution import scan
from lance_ops.reading.scan_plan import ScanRequest, plan_scan
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import DeletionFile, FragmentList, Manifest


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(pa.table({"id": range(40)}), dataset_uri, max_rows_per_file=10)


def ids(table: pa.Table) -> list[int]:
    return list(table.column("id").to_pylist())


@pytest.mark.parametrize("offset", [0, 1, 9, 10, 11, 25, 39, 40, 99])
@pytest.mark.parametrize("limit", [None, 0, 1, 9, 10, 11, 25, 99])
@pytest.mark.parametrize("gone", ["false", "id % 3 = 0", "id >= 10 AND id < 20", "id = 19 OR id = 20"])
def test_limit_and_offset_cut_the_whole_answer(
    dataset: lance_ops.LanceDataset, gone: str, limit: int | None, offset: int
) -> None:
    dataset.delete(gone)
    whole = ids(dataset.to_table())
    stop = None if limit is None else offset + limit
    assert ids(dataset.to_table(limit=limit, offset=offset)) == whole[offset:stop]
    assert dataset.scanner(limit=limit, offset=offset).count_rows() == len(whole[offset:stop])
    request = ScanRequest(dataset.snapshot.schema, limit=limit, offset=offset)
    looked_at = sum(block.stop - block.start for block in plan_scan(dataset.snapshot, request).blocks)
    assert looked_at <= len(whole[offset:stop]) + 40 - len(whole)


def test_limit_and_offset_count_deleted_rows_if_they_are_included(dataset: lance_ops.LanceDataset) -> None:
    dataset.delete("id % 2 = 0")
    table = dataset.to_table(with_row_id=True, include_deleted_rows=True, offset=8, limit=4)
    assert ids(table) == [8, 9, 10, 11]
    assert [row_id is None for row_id in table.column("_rowid").to_pylist()] == [True, False, True, False]


def test_fragments_come_in_the_order_asked_for(dataset: lance_ops.LanceDataset) -> None:
    first, _, third, _ = dataset.get_fragments()
    table = dataset.scanner(fragments=[third, first]).to_table()
    assert ids(table) == [*range(20, 30), *range(10)]
    assert dataset.scanner(fragments=[third], filter="id > 27").count_rows() == 2


def test_an_unknown_fragment_is_named_in_the_error(dataset: lance_ops.LanceDataset) -> None:
    with pytest.raises(InvalidInput, match="no fragment 9"):
        list(scan(dataset.snapshot, ScanRequest(dataset.snapshot.schema, fragment_ids=(1, 9))))


def test_highly_compressed_rows_are_decoded_in_several_blocks(dataset_uri: str) -> None:
    wide = pa.FixedSizeListArray.from_arrays(pa.array([0.0] * (1 << 20)), 1 << 14)
    dataset = lance_ops.write_dataset(pa.table({"v": pa.concat_arrays([wide] * 8)}), dataset_uri)
    blocks = plan_scan(dataset.snapshot, ScanRequest(dataset.snapshot.schema)).blocks
    assert max((block.stop - block.start) * (8 << 14) for block in blocks) <= 16 << 20
    assert sum(table.num_rows for table in scan(dataset.snapshot, ScanRequest(dataset.snapshot.schema))) == 512


@pytest.mark.parametrize(("columns", "fewest_rows"), [(1_500, 1_024), (6_000, 1_000), (12_000, 500)])
def test_a_block_of_many_columns_holds_most_of_a_chunk_of_each(
    dataset_uri: str, columns: int, fewest_rows: int
) -> None:
    table = pa.table({f"c{number}": np.arange(2_000) for number in range(columns)})
    dataset = lance_ops.write_dataset(table, dataset_uri)
    plan = plan_scan(dataset.snapshot, ScanRequest(dataset.snapshot.schema))
    assert len(plan.blocks[0]) >= fewest_rows
    assert len(plan.blocks[0]) * columns * 8 <= plan.largest_block_bytes <= 48 * 1024**2


def test_a_scan_keeps_few_files_open_and_a_take_few_threads(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": range(300)}), dataset_uri, max_rows_per_file=2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    before = threading.active_count()
    for _ in scan(dataset.snapshot, ScanRequest(dataset.snapshot.schema, readahead=64)):
        assert threading.active_count() <= before + 2
    positions = [299, 0, 7, 7, 150, 298]
    assert ids(dataset.take(positions)) == positions
    dataset.delete("id < 10 OR id = 150")
    assert ids(dataset.take([0, 288, 139, 0])) == [10, 299, 149, 10]


def forged(dataset: lance_ops.LanceDataset, manifest: Manifest) -> lance_ops.LanceDataset:
    """Return the dataset with another manifest, in memory only."""
    return lance_ops.LanceDataset.of(dataset.snapshot.with_manifest(manifest))


def test_missing_row_counts_are_read_from_data_files(dataset: lance_ops.LanceDataset) -> None:
    dataset.delete("id = 3")
    manifest = dataset.snapshot.manifest
    uncounted = tuple(
        replace(fragment, physical_rows=0, deletion_file=_uncounted(fragment.deletion_file))
        for fragment in manifest.fragments
    )
    old = forged(dataset, replace(manifest, fragments=FragmentList(uncounted)))
    assert old.to_table() == dataset.to_table()
    assert old.count_rows() == 39
    assert ids(old.take([3, 38])) == [4, 39]
    assert old.stats.dataset_stats()["num_deleted_rows"] == 1
    tasks = plan_compaction(old.snapshot, CompactionOptions()).tasks
    assert [task.fragment_ids for task in tasks] == [(0, 1, 2, 3)]


def _uncounted(file: DeletionFile | None) -> DeletionFile | None:
    return None if file is None else replace(file, num_deleted_rows=0)


def test_a_deletion_file_under_an_undeclared_base_is_refused(
    dataset: lance_ops.LanceDataset,
) -> None:
    dataset.delete("id = 3")
    first, *others = dataset.snapshot.manifest.fragments
    assert first.deletion_file is not None
    elsewhere = replace(first, deletion_file=replace(first.deletion_file, base_id=0))
    clone = forged(dataset, replace(dataset.snapshot.manifest, fragments=FragmentList([elsewhere, *others])))
    with pytest.raises(CorruptFile, match="under base 0"):
        Snapshot(clone.snapshot.store, clone.snapshot.committer, clone.snapshot.manifest).deletion_vector(elsewhere)
    assert clone.get_fragments()[0].deletion_file() is None


def test_the_cache_drops_deletion_vectors_that_the_version_does_not_name(dataset: lance_ops.LanceDataset) -> None:
    for row in range(5):
        dataset.delete(f"id = {row}")
        dataset.to_table()
    assert len(dataset.snapshot.read_cache._deletion_vectors) == 1
    assert len(list((Path(dataset.uri) / "_deletions").iterdir())) == 5


def test_a_pickled_task_is_small_and_opens_its_version(dataset: lance_ops.LanceDataset) -> None:
    task = plan_deletion(dataset.snapshot, bind_filter(dataset.snapshot, "id = 3")).tasks[0]
    assert task.snapshot.opened is dataset.snapshot
    assert task.snapshot.open().read_cache is dataset.snapshot.read_cache
    arrived = pickle.loads(pickle.dumps(task))
    assert arrived == task and arrived.snapshot.opened is None
    assert len(pickle.dumps(task)) < 2000
    assert find_rows(arrived) == find_rows(task)
    dataset.delete("id = 4")
    dataset.cleanup_old_versions(timedelta(0))
    with pytest.raises(VersionNotFound, match="no version 1"):
        find_rows(arrived)


def test_a_scan_in_batches_holds_only_a_few_blocks_in_memory(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_ops.reading.scan_plan.BLOCK_BYTES", 1 << 18)
    texts = pa.array([f"a text of its own, number {i * 7919 % 1_000_003}" for i in range(20_000)])
    table = pa.table({"id": range(400_000), "text": pa.concat_arrays([texts] * 20)})
    dataset = lance_ops.write_dataset(table, dataset_uri, max_rows_per_file=100_000)
    size_bytes = table.nbytes
    del table, texts
    before, peak, seen = pa.total_allocated_bytes(), 0, 0
    for batch in dataset.to_batches(filter="id % 2 = 0", io_buffer_size=1 << 19):
        seen += batch.num_rows
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert seen == 200_000
    assert peak < 20 * (1 << 18) < size_bytes / 3
