"""Row addresses in the files of indices that this library neither builds nor searches."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.schema import Schema
from lance_ops.errors import CorruptFile, StoreError, UnsupportedFeature
from lance_ops.file import FileReader, FileWriter
from lance_ops.indices import ALL_INDEX_TYPES, ALL_REMAP_ONLY_TYPES, remap_only_type_of
from lance_ops.indices.remap_only.remapped_addresses import (
    remap_address_tree,
    remap_address_trees,
    remap_single_addresses,
    remap_treemaps,
)
from lance_ops.store import MemoryStore
from lance_ops.store.faulty import Fault, FaultyStore, When
from lance_ops.table import IndexDetails, IndexFile, IndexMetadata
from lance_ops.table.rows import (
    NewFragment,
    OldFragment,
    RewrittenGroup,
    RowAddressMap,
    decode_address_tree,
    decode_treemap,
    encode_address_tree,
    encode_treemap,
)
from lance_ops.transactions.manifest_changes import keeps_entries_of_deleted_rows

GONE = 3 << 32 | 1
MOVES = RowAddressMap(
    (
        RewrittenGroup((OldFragment(3, 4, (1,)), OldFragment(4, 2)), (NewFragment(8, 3), NewFragment(9, 2))),
        RewrittenGroup((OldFragment(5, 3, (0, 1, 2)),), ()),
    )
)
"""Rows 3:0, 3:2, 3:3, 4:0, 4:1 become 8:0 to 8:2, 9:0 and 9:1; 3:1 and all of fragment 5 are gone."""

AFTER = {(3, 0): (8, 0), (3, 2): (8, 1), (3, 3): (8, 2), (4, 0): (9, 0), (4, 1): (9, 1)}
PLACES = [(3, n) for n in range(4)] + [(4, 0), (4, 1)] + [(5, n) for n in range(3)] + [(6, 0), (6, 77)]


def tree_of(places: set[tuple[int, int]]) -> dict[int, BitMap]:
    found: dict[int, BitMap] = {}
    for fragment_id, offset in places:
        found.setdefault(fragment_id, BitMap()).add(offset)
    return found


def metadata(kind: str, *files: IndexFile, covers: tuple[int, ...] = (3, 4, 5), version: int = 0) -> IndexMetadata:
    details = IndexDetails(f"/lance.table.{kind}")
    return IndexMetadata(
        uuid.uuid4(), "i", (0,), 1, FrozenBitMap(covers), details=details, index_version=version, files=files
    )


@given(st.sets(st.sampled_from(PLACES)), st.booleans())
def test_sets_of_rows_follow_the_rows_and_lose_those_that_are_gone(places: set[tuple[int, int]], covered: bool) -> None:
    moves = MOVES.within(FrozenBitMap([3, 4, 5])) if covered else MOVES
    expected = {AFTER[place] for place in places if place in AFTER}
    expected |= set() if covered else {place for place in places if place[0] == 6}
    trees = pa.array([None, encode_address_tree(tree_of(places))], pa.binary())
    treemaps = pa.array([encode_treemap(tree_of(places)), None], pa.large_binary())
    moved = remap_address_trees(trees, moves, "file").to_pylist()
    assert moved[0] is None and decode_address_tree(moved[1], "", "") == tree_of(expected)
    found = remap_treemaps(treemaps, moves, "file")
    assert found.type == treemaps.type and found[1].as_py() is None
    assert decode_treemap(found[0].as_py(), "", "") == tree_of(expected)


def test_a_whole_fragment_in_a_set_becomes_its_rows_that_are_left_or_stays_whole() -> None:
    data = encode_address_tree({3: None, 6: None})
    assert decode_address_tree(remap_address_tree(data, MOVES, ""), "", "") == {8: BitMap([0, 1, 2]), 6: None}
    assert decode_address_tree(remap_address_tree(data, MOVES.within(FrozenBitMap([3, 4, 5])), ""), "", "") == {
        8: BitMap([0, 1, 2])
    }


def test_a_single_address_of_a_deleted_row_and_a_null_stay() -> None:
    before = pa.array([3 << 32, None, GONE, 4 << 32 | 1, 6 << 32 | 9, 5 << 32], pa.uint64())
    after = pa.array([8 << 32, None, GONE, 9 << 32 | 1, 6 << 32 | 9, 5 << 32], pa.uint64())
    assert remap_single_addresses(before, MOVES, "") == after
    assert remap_single_addresses(before.drop_null(), MOVES, "") == after.drop_null()


def test_an_error_about_addresses_names_the_file() -> None:
    for change, column in (
        (remap_single_addresses, pa.array([3 << 32 | 4], pa.uint64())),
        (remap_single_addresses, pa.array([3], pa.int64())),
        (remap_address_trees, pa.array([encode_address_tree({3: BitMap([4])})])),
        (remap_address_trees, pa.array([b"junk"])),
        (remap_treemaps, pa.array([b"junk"])),
    ):
        with pytest.raises(CorruptFile, match=r"part\.idx"):
            change(column, MOVES, "part.idx")


def write(store: MemoryStore, path: str, table: pa.Table, buffers: tuple[bytes, ...] = ()) -> IndexFile:
    with FileWriter(store, path, Schema.from_arrow(table.schema)) as writer:
        writer.write_batch(table)
        for data in buffers:
            writer.add_global_buffer(data)
    return IndexFile(path, writer.finish().size_bytes)


def vector_index(store: MemoryStore, num_rows: int = 4) -> IndexMetadata:
    """An index of vectors; all rows are in fragment 3."""
    rows = np.arange(num_rows, dtype=np.uint64) | np.uint64(3 << 32)
    codes = pa.FixedSizeListArray.from_arrays(np.arange(64 * num_rows, dtype=np.uint64).astype(np.uint8), 64)
    table = pa.table({"_rowid": rows, "__pq_code": codes}).replace_schema_metadata({"lance:ivf": "1", "k": "2"})
    auxiliary = write(store, "auxiliary.idx", table, (b"partitions", b"codebook"))
    graph = write(store, "index.idx", pa.table({"__vector_id": pa.array([1, 2, 3], pa.uint32())}), (b"levels",))
    return metadata("VectorIndexDetails", auxiliary, graph, covers=(3,), version=1)


def test_all_but_the_addresses_of_an_index_stays_as_it_was() -> None:
    store, out = MemoryStore(), MemoryStore()
    num_rows = 200_000  # so many that pages of the codes are copied
    index = vector_index(store, num_rows)
    moves = RowAddressMap((RewrittenGroup((OldFragment(3, num_rows, (7,)),), (NewFragment(8, num_rows - 1),)),))
    kind = remap_only_type_of(index)
    assert kind is not None
    files = kind.remap(store, index, moves, out)
    assert [file.path for file in files] == ["auxiliary.idx", "index.idx"]
    assert [file.size_bytes for file in files] == [out.size(file.path) for file in files]
    assert out.get("index.idx") == store.get("index.idx")
    before, after = (FileReader(each, "auxiliary.idx") for each in (store, out))
    assert after.schema == before.schema and after.schema_metadata["lance:ivf"] == "1"
    assert [after.global_buffer(n).to_pybytes() for n in (1, 2)] == [b"partitions", b"codebook"]
    assert after.read().column("__pq_code") == before.read().column("__pq_code")
    expected = np.arange(num_rows, dtype=np.uint64) - (np.arange(num_rows) > 7) | np.uint64(8 << 32)
    expected[7] = 3 << 32 | 7
    np.testing.assert_array_equal(after.read().column("_rowid").to_numpy(), expected)


def test_files_that_the_metadata_does_not_name_are_listed() -> None:
    store, out = MemoryStore(), MemoryStore()
    index = vector_index(store)
    kind = remap_only_type_of(index)
    assert kind is not None
    assert set(kind.checked_files(store, replace(index, files=()))) == set(index.files)
    with pytest.raises(UnsupportedFeature, match="'i'.*names rows"):
        kind.checked_files(out, replace(index, files=()))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"index_version": 3}, "version 3"),
        ({"files": (IndexFile("auxiliary.idx", 1), IndexFile("extra.idx", 1))}, r"extra\.idx"),
        ({"files": (IndexFile("index.idx", 1),)}, "names rows"),
    ],
    ids=str,
)
def test_an_index_of_an_unknown_layout_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    index = vector_index(MemoryStore())
    kind = remap_only_type_of(index)
    assert kind is not None
    with pytest.raises(UnsupportedFeature, match=f"'i'.*{named}|{named}.*'i'"):
        kind.checked_files(MemoryStore(), replace(index, **change))


def test_a_remap_that_fails_leaves_no_file() -> None:
    store = MemoryStore()
    index = vector_index(store)
    kind = remap_only_type_of(index)
    assert kind is not None
    watched = FaultyStore(MemoryStore())
    kind.remap(store, index, MOVES, watched)
    for call in range(1, len(watched.calls) + 1):
        out = MemoryStore()
        with pytest.raises(StoreError):
            kind.remap(store, index, MOVES, FaultyStore(out, Fault(call=call, when=When.BEFORE)))
        assert list(out.list()) == [] == list(out.list_temporary()), call


def test_transactions_know_which_kinds_keep_the_entries_of_deleted_rows() -> None:
    for kind in ALL_REMAP_ONLY_TYPES:
        assert keeps_entries_of_deleted_rows(metadata(kind.details_name)) == kind.keeps_entries_of_deleted_rows
    for index_type in ALL_INDEX_TYPES:
        assert not keeps_entries_of_deleted_rows(metadata(index_type.details.type_name))
        assert remap_only_type_of(metadata(index_type.details.type_name)) is None
