"""A search of an index looks only at the fragments in which it found rows, and at those that it does not cover."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import FrozenBitMap

import lance_ops
from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.indices import RowAddressSet
from lance_ops.indices.btree.index import BTreeIndex
from lance_ops.reading import ScanRequest, bind_filter, plan_scan, scan
from lance_ops.reading.joined_blocks import BlockJoiner
from lance_ops.snapshot import Snapshot
from lance_ops.store import MemoryStore
from lance_ops.table import MANIFEST_CACHE, Fragment

INDEXED, FRAGMENTS = 6, 8
"""The first fragments are indexed; the others were appended later."""


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    """Return a handle that has read nothing, of a table with deleted rows in every fragment."""
    dataset = lance_ops.write_dataset(pa.table({"id": range(10 * INDEXED)}), dataset_uri, max_rows_per_file=10)
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert(pa.table({"id": range(10 * INDEXED, 10 * FRAGMENTS)}), max_rows_per_file=10)
    dataset.delete("id % 10 = 7")
    MANIFEST_CACHE.reset()  # it holds the fragments that this process has decoded
    return lance_ops.dataset(dataset_uri)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the id of each fragment that is decoded."""
    ids: list[int] = []
    from_pb = Fragment.from_pb

    def recorded(message: Any, path: str) -> Fragment:
        ids.append(message.id)
        return from_pb(message, path)

    monkeypatch.setattr(Fragment, "from_pb", recorded)
    return ids


def _remove_deletion_files(dataset: lance_ops.LanceDataset, *, of_all_but: set[int]) -> None:
    for place in Path(dataset.uri, "_deletions").iterdir():
        if int(place.name.partition("-")[0]) not in of_all_but:
            place.unlink()


@pytest.mark.parametrize(
    ("condition", "found", "looked_at"),
    [
        ("id = 23", [23], {2, 6, 7}),
        ("id IN (58, 3)", [3, 58], {0, 5, 6, 7}),
        ("id = 37", [], {3, 6, 7}),
        ("id = -1", [], {6, 7}),
        ("id >= 55 AND id < 62", [55, 56, 58, 59, 60, 61], {5, 6, 7}),
    ],
)
def test_other_fragments_are_neither_decoded_nor_their_deletion_vectors_read(
    dataset: lance_ops.LanceDataset, decoded: list[int], condition: str, found: list[int], looked_at: set[int]
) -> None:
    _remove_deletion_files(dataset, of_all_but=looked_at)
    assert dataset.to_table(filter=condition)["id"].to_pylist() == found
    assert set(decoded) == looked_at


def test_a_search_of_indexed_fragments_alone_decodes_no_other(
    dataset: lance_ops.LanceDataset, decoded: list[int]
) -> None:
    scanner = dataset.scanner(filter="id = 23", fast_search=True)
    assert scanner.to_table()["id"].to_pylist() == [23]
    assert decoded == [2]


def test_chosen_rows_decode_their_fragments_alone_in_the_order_asked_for(
    dataset: lance_ops.LanceDataset, decoded: list[int]
) -> None:
    snapshot = dataset.snapshot
    rows = RowAddressSet.from_addresses([5 << 32 | 4, 2 << 32 | 7, 2 << 32 | 8, 7 << 32 | 1])
    request = ScanRequest(snapshot.schema, bind_filter(snapshot, "id > 0"), rows=rows)
    _remove_deletion_files(dataset, of_all_but={2, 5, 7})
    assert pa.concat_tables(scan(snapshot, request))["id"].to_pylist() == [28, 54, 71]
    in_order = replace(request, fragment_ids=(7, 3, 2, 7))
    assert pa.concat_tables(scan(snapshot, in_order))["id"].to_pylist() == [71, 28]
    assert sorted(decoded) == [2, 5, 7]


def test_a_plan_keeps_no_offsets_of_the_rows_that_an_index_found(dataset_uri: str) -> None:
    table = pa.table({"x": range(40_000), "y": [row % 7 for row in range(40_000)]})
    dataset = lance_ops.write_dataset(table, dataset_uri, max_rows_per_file=10_000)
    dataset.create_scalar_index("x", "BTREE")
    dataset.create_scalar_index("y", "BTREE")
    dataset.delete("x = 12345")
    for condition, num_rows in (("x >= 0", 39_999), ("x >= 5000 AND y + 1 = 4", 35_000), ("y IN (1, 3)", 11_429)):
        request = ScanRequest(dataset.snapshot.schema, bind_filter(dataset.snapshot, condition))
        plan = plan_scan(dataset.snapshot, request)
        assert len(pickle.dumps([(rows.start, rows.stop, rows.chosen) for rows, _ in plan.blocks.parts])) < num_rows * 3
        assert plan.num_physical_rows == num_rows
        found = dataset.to_table(filter=condition)
        assert found.equals(dataset.scanner(filter=condition, use_scalar_index=False).to_table())
        ranges = [rows.chosen is None for rows, _ in plan.blocks.parts]
        assert all(ranges) if "AND" in condition else not any(ranges)


def test_rows_that_are_tested_on_what_an_index_left_are_not_joined_with_scanned_ones(dataset_uri: str) -> None:
    """The first two fragments are found whole and tested on `y` only; the others are tested on both columns."""
    dataset = lance_ops.write_dataset(
        pa.table({"x": range(4000), "y": range(4000)}), dataset_uri, max_rows_per_file=2000
    )
    dataset.create_scalar_index("x", "BTREE")
    dataset.insert(pa.table({"x": range(-2000, 2000), "y": range(4000)}), max_rows_per_file=2000)
    condition = "x >= 0 AND y % 2 = 1"
    found = dataset.to_table(filter=condition)
    assert found.num_rows == 3000
    assert found.equals(dataset.scanner(filter=condition, use_scalar_index=False).to_table())
    request = ScanRequest(dataset.snapshot.schema, bind_filter(dataset.snapshot, condition))
    groups = [*BlockJoiner(dataset.snapshot, request).group(plan_scan(dataset.snapshot, request).blocks, 1)]
    assert [[block.fragment.id for block in group] for group in groups] == [[0, 1], [2, 3]]


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Return a list that gets the fragments of each index segment that is searched."""
    segments: list[list[int]] = []
    search = BTreeIndex.search

    def recorded(self: BTreeIndex, query: Any) -> RowAddressSet:
        segments.append([*(self.fragments or ())])
        return search(self, query)

    monkeypatch.setattr(BTreeIndex, "search", recorded)
    return segments


def _in_segments(uri: str, count: int, **options: Any) -> lance_ops.LanceDataset:
    """Return a handle, with a manifest of its own, of a table of fragments that have an index segment each."""
    dataset = lance_ops.write_dataset(pa.table({"id": range(10 * count)}), uri, max_rows_per_file=10, **options)
    dataset.create_scalar_index("id", "BTREE")
    manifest = dataset.snapshot.manifest
    (index,) = manifest.indices
    segments = tuple(replace(index, fragment_bitmap=FrozenBitMap([number])) for number in range(count))
    return lance_ops.LanceDataset.of(dataset.snapshot.with_manifest(replace(manifest, indices=segments)))


def test_segments_that_cover_no_requested_fragment_are_not_searched(
    dataset_uri: str, searched: list[list[int]]
) -> None:
    dataset = _in_segments(dataset_uri, 4)
    asked = [dataset.get_fragments()[number] for number in (3, 1)]
    found = dataset.scanner(filter="id >= 15 AND id < 33", fragments=asked).to_table()
    assert found["id"].to_pylist() == [30, 31, 32, 15, 16, 17, 18, 19]
    assert sorted(searched) == [[1], [3]]
    with pytest.raises(InvalidInput, match="no fragment -1"):
        [
            *scan(
                dataset.snapshot,
                ScanRequest(dataset.snapshot.schema, bind_filter(dataset.snapshot, "id = 1"), fragment_ids=(-1, 0)),
            )
        ]


def test_segments_of_a_remote_store_are_searched_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = _in_segments("memory://", 4)
    monkeypatch.setattr(MemoryStore, "reads_in_place", False)
    together, search = threading.Barrier(4, timeout=120), BTreeIndex.search

    def waiting(self: BTreeIndex, query: Any) -> RowAddressSet:
        together.wait()  # raises if fewer segments are searched at the same time
        return search(self, query)

    monkeypatch.setattr(BTreeIndex, "search", waiting)
    assert dataset.to_table(filter="id IN (3, 35, 17, 4)")["id"].to_pylist() == [3, 4, 17, 35]


@pytest.mark.parametrize("row", [10, 10_000])
def test_an_index_row_that_its_fragment_does_not_have_is_corrupt(
    dataset: lance_ops.LanceDataset, row: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BTreeIndex, "search", lambda *_: RowAddressSet.from_addresses([5, 3 << 32 | row]))
    (segment,) = dataset.snapshot.manifest.indices
    reason = rf"{segment.uuid}: index 'id_idx': row {row} of fragment 3, which has 10 rows; rebuild the index"
    with pytest.raises(CorruptFile, match=reason):
        dataset.to_table(filter="id = 5")
    assert dataset.scanner(filter="id = 5", fragments=dataset.get_fragments()[:1]).count_rows() == 1


def test_segments_of_row_ids_need_the_addresses_of_all_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only segments of version 0, which older releases wrote, name rows by id."""
    dataset = _in_segments("memory://", 4, enable_stable_row_ids=True)
    manifest = dataset.snapshot.manifest
    by_id = tuple(replace(segment, index_version=0) for segment in manifest.indices)
    snapshot = dataset.snapshot.with_manifest(replace(manifest, indices=by_id))
    monkeypatch.setattr(MemoryStore, "reads_in_place", False)
    read: list[tuple[int, str]] = []
    read_lineage = Snapshot._read_lineage

    def recorded(self: Snapshot, fragment_id: int) -> Any:
        read.append((fragment_id, threading.current_thread().name))
        return read_lineage(self, fragment_id)

    monkeypatch.setattr(Snapshot, "_read_lineage", recorded)
    request = ScanRequest(snapshot.schema, bind_filter(snapshot, "id IN (3, 4)"))
    assert [table["id"].to_pylist() for table in scan(snapshot, request)] == [[3, 4]]
    here = threading.current_thread().name
    assert sorted(read) == [(number, here) for number in range(4)], "several threads might each read all"
