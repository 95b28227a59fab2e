from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import FrozenBitMap

from lance_ops.core.errors import CorruptFile, InvalidInput, UnsupportedFeature
from lance_ops.core.predicate import Bound, Column, Equals, Range, parse_filter
from lance_ops.core.schema import Schema
from lance_ops.file import FileReader, FileWriter
from lance_ops.indices import INDEX_ROW, INDEX_VALUE, RowKey
from lance_ops.indices.btree import BTree, BTreeIndex
from lance_ops.indices.btree.layout import PAGE_DATA, PAGE_LOOKUP
from lance_ops.indices.btree.query_spans import BTreeQuery
from lance_ops.indices.btree.row_ranges import join_ranges, split_ranges
from lance_ops.store import Buffers, ByteRange, MemoryStore, Store
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows.row_address_map import NewFragment, OldFragment, RewrittenGroup, RowAddressMap

LOOKUP_METADATA = {"batch_size": "3", "range_partitioned": "false"}


class CountingStore(MemoryStore):
    """Counts the bytes read of each path; nothing is handed out in place."""

    reads_in_place = False

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[str, int]] = []

    def get(self, path: str) -> pa.Buffer:
        self.reads.append((path, self.size(path)))
        return super().get(path)

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Buffers:
        self.reads.append((path, sum(end - start for start, end in ranges)))
        return [super(CountingStore, self).get(path).slice(start, end - start) for start, end in ranges]


def batches_of(values: pa.Array, batch_rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
    rows = pa.array(np.arange(len(values), dtype=np.uint64))
    for start in range(0, len(values), batch_rows):
        columns = [values.slice(start, batch_rows), rows.slice(start, batch_rows)]
        yield pa.record_batch(columns, names=[INDEX_VALUE, INDEX_ROW])


def train(
    values: pa.Array, index_type: BTree | None = None, store: Store | None = None, batch_rows: int = 1 << 16
) -> BTreeIndex:
    index_type = index_type or BTree(page_rows=3)
    store = store or MemoryStore()
    field = Schema.from_arrow(pa.schema([pa.field("x", values.type)])).fields[0]
    files = index_type.train(batches_of(values, batch_rows), field, store)
    return load(store, files, index_type)


def load(store: Store, files: tuple[IndexFile, ...] = (), index_type: BTree | None = None) -> BTreeIndex:
    metadata = IndexMetadata(uuid.uuid4(), "x_idx", (0,), 1, FrozenBitMap([0]), files=files)
    index = (index_type or BTree()).load(store, metadata)
    assert isinstance(index, BTreeIndex)
    return index


def find(index: BTreeIndex, text: str) -> list[int]:
    query = BTree().serves(parse_filter(text, pa.schema([pa.field("x", index.value_type)])))
    assert query is not None
    rows: list[int] = index.search(query).addresses().tolist()
    return rows


def write(store: Store, path: str, columns: Mapping[str, pa.Array], metadata: Mapping[str, str] | None = None) -> None:
    batch = pa.record_batch(dict(columns))
    writer = FileWriter(store, path, Schema.from_arrow(batch.schema.with_metadata(dict(metadata or {}))))
    writer.write_batch(batch)
    writer.finish()


def lookup_of(mins: list[Any], maxs: list[Any], nulls: list[int] | None = None) -> dict[str, pa.Array]:
    return {
        "min": pa.array(mins, pa.int64()),
        "max": pa.array(maxs, pa.int64()),
        "null_count": pa.array(nulls or [0] * len(mins), pa.uint32()),
        "page_idx": pa.array(range(len(mins)), pa.uint32()),
    }


def test_pages_hold_values_in_order_with_nulls_first() -> None:
    store = MemoryStore()
    train(pa.array([5, None, 3, None, 9, None, None, 1]), store=store)
    data, lookup = (FileReader(store, path).read() for path in (PAGE_DATA, PAGE_LOOKUP))
    assert data.to_pydict() == {
        "values": [None, None, None, None, 1, 3, 5, 9],
        "ids": [1, 3, 5, 6, 7, 2, 0, 4],
    }
    assert lookup.to_pydict() == {
        "min": [None, None, 5],
        "max": [None, 3, 9],
        "null_count": [3, 1, 0],
        "page_idx": [0, 1, 2],
    }
    assert FileReader(store, PAGE_LOOKUP).schema.metadata == LOOKUP_METADATA


def test_an_index_without_rows_finds_nothing() -> None:
    index = train(pa.array([], pa.string()))
    assert [find(index, text) for text in ("x = 'a'", "x IS NULL", "x IS NOT NULL", "x < 'a'")] == [[]] * 4
    assert index.statistics() == {"min": "N/A", "max": "N/A", "num_pages": 0}


def test_the_written_files_do_not_depend_on_the_sort_memory() -> None:
    values = pa.array(np.random.default_rng(3).integers(0, 50, 5000))
    stores = [MemoryStore() for _ in range(3)]
    for store, sort_bytes, batch_rows in zip(stores, (1 << 30, 4000, 1), (5000, 700, 11), strict=True):
        train(values, BTree(sort_bytes=sort_bytes), store, batch_rows)
    for path in (PAGE_DATA, PAGE_LOOKUP):
        tables = [FileReader(store, path).read() for store in stores]
        assert tables[0].equals(tables[1])
        assert tables[0].equals(tables[2])


def test_a_search_reads_the_pages_it_touches_and_the_lookup_once() -> None:
    store = CountingStore()
    num_rows = 400_000
    values = pa.array(np.random.default_rng(5).permutation(num_rows) * 1_000_003)
    index = train(values, BTree(), store)
    assert {path for path, _ in store.reads} == {PAGE_LOOKUP}
    size = store.size(PAGE_DATA)

    find(index, "x < 0")
    find(index, "x = 5")  # no row has this value
    store.reads.clear()
    assert len(find(index, f"x = {17 * 1_000_003}")) == 1
    read = sum(num_bytes for _, num_bytes in store.reads)
    assert {path for path, _ in store.reads} == {PAGE_DATA}
    assert read < size // 10  # whole blocks, which have checksums

    store.reads.clear()
    wide = find(index, "x >= 1000000000")
    everything = sum(num_bytes for _, num_bytes in store.reads)
    assert len(wide) == num_rows - 1000
    assert everything < size * 0.7, "values of pages inside of the range were read"


def test_values_and_addresses_of_one_page_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    index = train(pa.array(np.arange(1000) // 2 * 10), BTree(page_rows=64))
    reads: list[list[str]] = []
    read = FileReader.read

    def recorded(self: FileReader, schema: Schema, *arguments: Any, **options: Any) -> pa.Table:
        reads.append(schema.names)
        return read(self, schema, *arguments, **options)

    monkeypatch.setattr(FileReader, "read", recorded)
    for text, found in (
        ("x = 100", [20, 21]),
        ("x = 105", []),
        ("x > 100 and x < 130", [22, 23, 24, 25]),
        ("x in (0, 100)", [0, 1, 20, 21]),
        ("x < 20", [0, 1, 2, 3]),
    ):
        assert find(index, text) == found
        assert reads == [["values", "ids"]], text
        reads.clear()
    assert find(index, "x > 100 and x < 1000") == [*range(22, 200)]
    assert reads == [["values"], ["ids"]]  # the first and the last page, then all rows between them


def test_a_value_between_two_pages_is_known_to_be_absent_without_reading() -> None:
    store = CountingStore()
    index = train(pa.array([0, 1, 2, 10, 11, 12]), store=store)
    store.reads.clear()
    assert find(index, "x = 5") == []
    assert find(index, "x > 12") == []
    assert find(index, "x IS NULL") == []
    assert store.reads == []


def test_like_with_a_prefix_finds_a_superset() -> None:
    index = train(pa.array(["abc", "abd", "b", "axc", None]))
    query = BTree().serves(parse_filter("x LIKE 'ab_'", pa.schema({"x": pa.string()})))
    assert query is not None
    found = index.search(query)
    assert (found.addresses().tolist(), found.exact) == ([0, 1], False)
    for text in ("x LIKE '%c'", "x LIKE '_b%'", "x ILIKE 'ab%'", "x != 'b'"):
        assert BTree().serves(parse_filter(text, pa.schema({"x": pa.string()}))) is None


@pytest.mark.parametrize(
    ("bound", "below", "above"),
    [
        (1.0001, [0, 3, 4], [1, 2]),
        (1.0, [3, 4], [1, 2]),
        (70000.0, [0, 1, 2, 3, 4], []),
        (1e-30, [3, 4], [0, 1, 2]),
        (-1e-30, [], [0, 1, 2, 3, 4]),
        (0.0, [], [0, 1, 2]),
    ],
)
def test_a_bound_between_two_half_floats_selects_the_rows_on_its_side(
    bound: float, below: list[int], above: list[int]
) -> None:
    index = train(pa.array([np.float16(value) for value in (1.0, 1.0009765625, 65504.0, -0.0, 0.0)]))
    column, end = Column(("x",), pa.float16()), Bound(pa.scalar(bound, pa.float32()), inclusive=False)
    assert index.search(BTreeQuery(Range(column, upper=end))).addresses().tolist() == below
    assert index.search(BTreeQuery(Range(column, lower=end))).addresses().tolist() == above
    equal = index.search(BTreeQuery(Equals(column, pa.array([bound], pa.float32()))))
    assert len(equal) + len(below) + len(above) == 5


def test_nan_is_above_all_numbers_whatever_its_sign() -> None:
    negative = pa.array([-(1 << 51)]).view(pa.float64())
    index = train(pa.concat_arrays([pa.array([1.0, math.nan, math.inf, None, -math.inf]), negative]))
    assert find(index, "x > 0") == [0, 1, 2, 5]
    assert find(index, "x < CAST('NaN' AS DOUBLE)") == [0, 2, 4]
    assert find(index, "x <= CAST('NaN' AS DOUBLE)") == [0, 1, 2, 4, 5]
    assert find(index, "x = CAST('NaN' AS DOUBLE)") == [1, 5]
    assert find(index, "x > CAST('NaN' AS DOUBLE)") == []
    assert find(index, "x <= CAST('Infinity' AS DOUBLE)") == [0, 2, 4]
    assert find(index, "x IS NOT NULL") == [0, 1, 2, 4, 5]


def test_a_list_of_values_in_many_pages_is_found() -> None:
    index = train(pa.array(range(2000)), BTree(page_rows=2))
    wanted = range(0, 2000, 7)
    assert find(index, f"x IN ({', '.join(map(str, wanted))})") == list(wanted)


def test_version_0_in_a_table_with_stable_row_ids_holds_row_ids() -> None:
    assert BTree().row_key(0, stable_row_ids=True) is RowKey.STABLE_ID
    assert BTree().row_key(1, stable_row_ids=True) is RowKey.ADDRESS
    assert (BTree().index_version(stable_row_ids=False), BTree().index_version(stable_row_ids=True)) == (0, 1)


ROWS = pa.array([5, None, 3, None, 9, None, None, 1, 5, 7])
MOVED = RowAddressMap((RewrittenGroup((OldFragment(0, 10),), (NewFragment(3, 4), NewFragment(4, 6))),))


def remapped(index: BTreeIndex, moved: RowAddressMap, fragments: Sequence[int]) -> tuple[Store, BTreeIndex]:
    store = MemoryStore()
    files = index.remap(moved, store)
    metadata = replace(index.metadata, files=files, fragment_bitmap=FrozenBitMap(fragments))
    loaded = BTree().load(store, metadata)
    assert isinstance(loaded, BTreeIndex)
    return store, loaded


def rows_of(store: Store) -> list[tuple[int | None, int]]:
    data = FileReader(store, PAGE_DATA).read()
    return list(zip(data["values"].to_pylist(), data["ids"].to_pylist(), strict=True))


def test_a_remap_without_deleted_rows_copies_values_and_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    index = train(ROWS, store=store)
    before = rows_of(store)
    monkeypatch.setattr(BTreeIndex, "sorted_rows", None)  # the method that decodes the values
    new_store, new = remapped(index, MOVED, [3, 4])
    assert new_store.get(PAGE_LOOKUP).equals(store.get(PAGE_LOOKUP))
    assert rows_of(new_store) == [
        (value, int(MOVED.remap(np.array([address], np.uint64))[0])) for value, address in before
    ]
    assert sorted(find(new, "x >= 5")) == [3 << 32, 4 << 32, (4 << 32) + 4, (4 << 32) + 5]


def test_a_remap_leaves_out_rows_that_were_deleted_or_are_not_covered() -> None:
    fewer = RowAddressMap((RewrittenGroup((OldFragment(0, 10, (0, 1)),), (NewFragment(3, 8),)),))
    store, index = remapped(train(ROWS), fewer, [3])
    assert find(index, "x = 5") == [(3 << 32) + 6]
    assert len(rows_of(store)) == 8

    trained = train(ROWS)
    uncovered = replace(trained.metadata, fragment_bitmap=FrozenBitMap([1]))
    loaded = BTree().load(trained._store, uncovered)
    assert isinstance(loaded, BTreeIndex)
    store, index = remapped(loaded, RowAddressMap((RewrittenGroup((OldFragment(1, 1),), (NewFragment(3, 1),)),)), [3])
    assert rows_of(store) == []


def test_a_remap_of_many_small_pages_writes_few_pages() -> None:
    store = MemoryStore()
    values = pa.array(np.arange(1_000_000))
    train(values, BTree(page_rows=4096), store)
    rows = FileReader(store, PAGE_DATA).read()
    with FileWriter(store, PAGE_DATA, Schema.from_arrow(rows.schema), page_bytes=1 << 20) as writer:
        writer.write_batch(rows)
    assert len(FileReader(store, PAGE_DATA).column(0).pages) == 8
    moved = RowAddressMap((RewrittenGroup((OldFragment(0, 1_000_000),), (NewFragment(3, 1_000_000),)),))
    new_store, index = remapped(load(store), moved, [3])
    assert len(FileReader(new_store, PAGE_DATA).column(0).pages) == 2
    assert find(index, "x = 999999") == [(3 << 32) + 999_999]


def test_segments_of_different_types_do_not_merge() -> None:
    with pytest.raises(InvalidInput, match="x_idx"):
        train(pa.array([1])).merge([train(pa.array(["a"]))], [], MemoryStore(), live_fragments=[0])


@pytest.mark.parametrize(
    ("columns", "metadata", "error", "words"),
    [
        (lookup_of([1], [2]), {"range_partitioned": "true"}, UnsupportedFeature, "range-partitioned"),
        (lookup_of([1], [2]), {"batch_size": "0"}, CorruptFile, "batch_size"),
        (lookup_of([1], [2]), {"batch_size": "many"}, CorruptFile, "'many'"),
        (lookup_of([1, 0], [2, 1]), {}, CorruptFile, "not in order"),
        (lookup_of([1, None], [2, None]), {}, CorruptFile, "not in order"),
        (lookup_of([1], [2]) | {"page_idx": pa.array([1], pa.uint32())}, {}, CorruptFile, "page_idx"),
        (
            lookup_of([1], [2]) | {"page_idx": pa.array([None], pa.uint32())},
            {},
            CorruptFile,
            "page_idx: a page has none",
        ),
        (lookup_of([1], [2]) | {"max": pa.array(["a"])}, {}, CorruptFile, "no column 'max' of type int64"),
        ({"min": pa.array([1])}, {}, CorruptFile, "no column 'max'"),
    ],
)
def test_a_lookup_that_contradicts_itself_is_refused_by_name(
    columns: dict[str, pa.Array], metadata: dict[str, str], error: type[Exception], words: str
) -> None:
    store = MemoryStore()
    write(store, PAGE_LOOKUP, columns, LOOKUP_METADATA | metadata)
    with pytest.raises(error, match=rf"{PAGE_LOOKUP}.*{words}"):
        load(store)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"values": pa.array([1, 2, 3]), "ids": pa.array([0, 1, 2], pa.uint64())}, "1 pages where page_lookup has 2"),
        ({"values": pa.array([1, 3, 4, 5]), "ids": pa.array(range(4), pa.uint64())}, "page 0: not the values"),
        ({"values": pa.array([1, 2, 3, 5]), "ids": pa.array(range(4), pa.int64())}, "no column 'ids' of type uint64"),
        ({"values": pa.array([1, 2, 3, 5]), "ids": pa.array([0, 1, None, 2], pa.uint64())}, "has no address"),
    ],
)
def test_pages_that_contradict_the_lookup_are_refused_by_name(data: dict[str, pa.Array], words: str) -> None:
    store = MemoryStore()
    write(store, PAGE_LOOKUP, lookup_of([1, 5], [3, 5]), LOOKUP_METADATA)
    write(store, PAGE_DATA, data)
    with pytest.raises(CorruptFile, match=rf"{PAGE_DATA}.*{words}"):
        find(load(store), "x > 1")


def test_a_lookup_without_metadata_has_pages_of_4096() -> None:
    store = MemoryStore()
    write(store, PAGE_LOOKUP, lookup_of([1], [3]))
    write(store, PAGE_DATA, {"values": pa.array([1, 2, 3]), "ids": pa.array([4, 5, 6], pa.uint64())})
    assert find(load(store), "x >= 2") == [5, 6]


def test_a_file_of_another_size_than_recorded_is_refused() -> None:
    store = MemoryStore()
    index = train(pa.array([1]), store=store)
    wrong = tuple(replace(file, size_bytes=file.size_bytes + 1) for file in index.metadata.files)
    with pytest.raises(CorruptFile, match=PAGE_LOOKUP):
        load(store, wrong)


def test_ranges_are_joined_and_split_into_portions() -> None:
    assert join_ranges([(5, 9), (1, 3), (3, 4), (7, 12), (20, 20)]) == [(1, 4), (5, 12)]
    assert list(split_ranges([(1, 4), (5, 12)], 4)) == [[(1, 4), (5, 6)], [(6, 10)], [(10, 12)]]
    assert list(split_ranges([], 4)) == []
