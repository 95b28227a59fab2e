"""Zone maps of rows with known zones: what is written, what is refused, and what a verification finds."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap, FrozenBitMap

import lance_ops
from lance_ops.core.errors import CorruptFile, InvalidInput, UnsupportedFeature
from lance_ops.core.predicate import Predicate, parse_filter
from lance_ops.core.schema import Schema
from lance_ops.file import FileWriter
from lance_ops.indices import INDEX_ROW, INDEX_VALUE, IndexConfig
from lance_ops.indices.zonemap import ZoneMap, ZoneMapIndex
from lance_ops.indices.zonemap.index import ZoneMapQuery, summarize
from lance_ops.indices.zonemap.layout import ZONEMAP, ZoneTable, write_zones
from lance_ops.indices.zonemap.zones import Zone
from lance_ops.store import LocalStore, MemoryStore, Store
from lance_ops.table import IndexDetails, IndexMetadata
from lance_ops.table.rows import NewFragment, OldFragment, RewrittenGroup, RowAddressMap


def rows(values: list[Any], first: int = 0, kind: pa.DataType | None = None, keep: Any = None) -> pa.RecordBatch:
    """Return training rows at consecutive addresses; with `keep`, only those at these positions."""
    addresses = np.arange(first, first + len(values), dtype=np.uint64)
    batch = pa.record_batch([pa.array(values, kind or pa.int64()), pa.array(addresses)], names=[INDEX_VALUE, INDEX_ROW])
    return batch if keep is None else batch.take(pa.array(keep))


def opened(store: Store, covered: set[int] | None = None) -> ZoneMapIndex:
    bitmap = None if covered is None else FrozenBitMap(covered)
    metadata = IndexMetadata(uuid.uuid4(), "x_idx", (0,), 1, bitmap, ZoneMap().details)
    loaded = ZoneMap().load(store, metadata)
    assert isinstance(loaded, ZoneMapIndex)
    return loaded


def written(table: ZoneTable) -> Store:
    store = MemoryStore()
    write_zones(table, store)
    return store


def condition(text: str, kind: pa.DataType | None = None) -> Predicate:
    return parse_filter(text, pa.schema([pa.field("x", kind or pa.int64())]))


def test_zones_have_so_many_live_rows_of_one_fragment() -> None:
    first = rows([5, 1, None, 7, 9, 8, 2], keep=[0, 2, 3, 5, 6])
    second = rows([4, 4], first=1 << 32)
    table = summarize([first.slice(0, 2), first.slice(2), second], pa.int64(), 2, "x")
    assert list(table.zones()) == [
        Zone(0, 0, 3, 5, 5, null_count=1, has_values=True),
        Zone(0, 3, 6, 7, 8, has_values=True),
        Zone(0, 6, 7, 2, 2, has_values=True),
        Zone(1, 0, 2, 4, 4, has_values=True),
    ]
    assert table.nulls == {0: BitMap([2])}


def test_zones_of_fragments_in_another_order_are_written_in_order() -> None:
    table = summarize([rows([4], first=3 << 32), rows([1], first=1 << 32)], pa.int64(), 2, "x")
    assert table.fragment_ids.tolist() == [1, 3]
    assert opened(written(table)).zones.fragment_ids.tolist() == [1, 3]


def test_the_details_name_the_rows_of_a_zone() -> None:
    kind = ZoneMap().with_parameters({"rows_per_zone": 77})
    assert ZoneMap().with_details(kind.details, "x_idx") == kind
    assert kind.parameters == (("rows_per_zone", 77),)
    assert ZoneMap().with_details(IndexDetails(ZoneMap.details_url), "x_idx") == ZoneMap()
    with pytest.raises(CorruptFile, match="'x_idx'"):
        ZoneMap().with_details(IndexDetails(ZoneMap.details_url, b"\x08"), "x_idx")


def test_an_older_file_without_nulls_is_searched_moved_and_merged() -> None:
    table = replace(summarize([rows([1, None, 3, None, 5, 6])], pa.int64(), 2, "x"), nulls=None)
    index = opened(written(table), {0})
    found = index.search(ZoneMapQuery(condition("x IS NULL")))
    assert not found.exact and found.addresses().tolist() == [0, 1, 2, 3]
    moves = RowAddressMap((RewrittenGroup((OldFragment(0, 6, (4,)),), (NewFragment(7, 5),)),))
    writes: list[Callable[[Store], object]] = [
        lambda store: index.remap(moves, store),
        lambda store: index.merge([], [rows([None], first=1 << 32)], store, live_fragments=[0]),
    ]
    for write in writes:
        store = MemoryStore()
        write(store)
        assert opened(store).zones.nulls is None
        assert len(opened(store).search(ZoneMapQuery(condition("x IS NULL")))) >= 4


UNBOUNDED: dict[str, tuple[pa.DataType, list[Any], Any, str]] = {
    "bytes": (pa.binary(2), [None, b"ab"] * 5, None, "x = X'6162'"),
    "floats": (pa.float64(), [math.nan, 2.5] * 5, math.nan, "x = 2.5"),
}
"""Values of which a release of the reference states no usable bound, what it states instead, and a condition."""


@pytest.mark.parametrize("name", UNBOUNDED)
@pytest.mark.parametrize(
    ("deleted", "ends"),
    [((0, 2, 4, 6, 8), (5,)), ((), (5, 5)), ((), (1,) * 10), ((1, 3), (2, 3, 3))],
    ids=["of half", "cut in two", "cut in rows", "of some, cut"],
)
def test_a_part_of_a_zone_without_bounds_still_may_have_values(
    name: str, deleted: tuple[int, ...], ends: tuple[int, ...]
) -> None:
    """The counts of the whole zone are as high as the part has rows."""
    kind, values, bound, text = UNBOUNDED[name]
    table = summarize([rows(values, kind=kind)], kind, 10, "x")
    bounds = pa.array([bound], kind)
    stated = table.rows.set_column(0, "min", bounds).set_column(1, "max", bounds)
    new = tuple(NewFragment(7 + number, num_rows) for number, num_rows in enumerate(ends))
    moves = RowAddressMap((RewrittenGroup((OldFragment(0, 10, deleted),), new),))
    store = MemoryStore()
    opened(written(replace(table, rows=stated, nulls=None)), {0}).remap(moves, store)
    moved = opened(store)
    for sought, place in ((text, 1), ("x IS NULL" if bound is None else "x = CAST('NaN' AS DOUBLE)", 0)):
        places = [at for at in range(10) if at % 2 == place and at not in deleted]
        expected = moves.remap(np.array(places, np.uint64))
        assert set(expected) <= set(moved.search(ZoneMapQuery(condition(sought, kind))).addresses()), sought


def test_a_rewrite_cuts_and_joins_zones() -> None:
    table = summarize([rows([0, 1, 2, 3, 4, None]), rows([9, 9], first=1 << 32)], pa.int64(), 3, "x")
    old = (OldFragment(0, 6, (1, 2)), OldFragment(1, 2))
    moves = RowAddressMap((RewrittenGroup(old, (NewFragment(5, 2), NewFragment(6, 4))),))
    store = MemoryStore()
    opened(written(table), {0, 1}).remap(moves, store)
    assert list(opened(store).zones.zones()) == [
        Zone(5, 0, 2, 0, 4, has_values=True),  # row 0, and row 3 of the second zone
        Zone(6, 0, 2, 3, 4, null_count=1, has_values=True),
        Zone(6, 2, 4, 9, 9, has_values=True),
    ]
    assert opened(store).zones.nulls == {6: BitMap([1])}
    beyond = RowAddressMap((RewrittenGroup((OldFragment(0, 3),), (NewFragment(5, 3),)),))
    with pytest.raises(InvalidInput, match="fragment 0 has no row at offset 5"):
        opened(written(table), {0, 1}).remap(beyond, MemoryStore())


def test_segments_of_different_types_do_not_merge() -> None:
    numbers, texts = (
        opened(written(summarize([rows(values, kind=kind)], kind, 3, "x")))
        for values, kind in (([1], pa.int64()), (["a"], pa.string()))
    )
    with pytest.raises(InvalidInput, match="'x_idx'.*do not merge"):
        numbers.merge([texts], [], MemoryStore(), live_fragments=[0])


@pytest.mark.parametrize(
    ("batch", "wrong"),
    [
        (rows([1, None, 3, 4]), []),
        (rows([1, None, 3, 5]), [3]),
        (rows([0, None, 3, 4]), [0]),
        (rows([1, 2, 3, 4]), [1]),
        (rows([1, None, None, 4]), [2]),
        (rows([1, None, 3, 4, 4]), [4]),
        (rows([1, 2], first=1 << 32), [1 << 32, (1 << 32) + 1]),
        (rows([]), []),
    ],
)
def test_rows_that_a_search_would_lose_are_named(batch: pa.RecordBatch, wrong: list[int]) -> None:
    index = opened(written(summarize([rows([1, None, 3, 4])], pa.int64(), 2, "x")))
    assert index.contradicted(batch).tolist() == wrong


def test_a_nan_in_a_zone_without_one_is_named() -> None:
    index = opened(written(summarize([rows([1.0, 2.0, math.nan], kind=pa.float64())], pa.float64(), 2, "x")))
    assert index.contradicted(rows([1.0, math.nan, math.nan], kind=pa.float64())).tolist() == [1]


def damaged_file(change: Callable[[dict[str, Any], dict[str, str]], None]) -> Store:
    """Write a file of one zone after a change of its columns and metadata."""
    table = summarize([rows([1, 2])], pa.int64(), 2, "x").rows
    columns = dict(zip(table.schema.names, table.columns, strict=True))
    metadata = {"rows_per_zone": "2", "null_bitmap": "1"}
    change(columns, metadata)
    schema = pa.table(columns).schema.with_metadata(metadata)
    store = MemoryStore()
    with FileWriter(store, ZONEMAP, Schema.from_arrow(schema)) as writer:
        writer.add_global_buffer(b"\0\0\0\0")
        writer.write_batch(pa.record_batch(list(columns.values()), schema=schema))
    return store


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda columns, metadata: columns.pop("nan_count"), "no column 'nan_count'"),
        (lambda columns, metadata: columns.pop("min"), "no column 'min'"),
        (lambda columns, metadata: columns.update(max=pa.array(["a"])), "no column 'max' of type int64"),
        (lambda columns, metadata: columns.update(zone_start=pa.array([None], pa.uint64())), "has no number"),
        (lambda columns, metadata: columns.update(zone_start=pa.array([2**32], pa.uint64())), "begins beyond"),
        (lambda columns, metadata: columns.update(fragment_id=pa.array([2**32], pa.uint64())), "begins beyond"),
        (lambda columns, metadata: columns.update(zone_length=pa.array([2**32 + 1], pa.uint64())), "ends beyond"),
        (lambda columns, metadata: columns.update(zone_length=pa.array([2**64 - 1], pa.uint64())), "ends beyond"),
        (lambda columns, metadata: metadata.update(rows_per_zone="0"), "'0' is not a number of rows"),
        (lambda columns, metadata: metadata.update(rows_per_zone="-5"), "'-5' is not a number of rows"),
        (lambda columns, metadata: metadata.update(null_bitmap="2"), "no global buffer '2'"),
        (lambda columns, metadata: metadata.update(null_bitmap="0"), "null_bitmap: not a set of row addresses"),
    ],
)
def test_a_file_that_cannot_be_is_refused_by_name(change: Any, message: str) -> None:
    with pytest.raises(CorruptFile, match=rf"zonemap\.lance.*{message}"):
        opened(damaged_file(change))


def test_zones_on_values_without_an_order_are_not_read_here() -> None:
    def change(columns: dict[str, Any], metadata: dict[str, str]) -> None:
        columns.update(min=pa.nulls(1, pa.list_(pa.int8())), max=pa.nulls(1, pa.list_(pa.int8())))

    with pytest.raises(UnsupportedFeature, match="'x_idx'"):
        opened(damaged_file(change))


def test_a_verification_finds_wrong_bounds_and_a_repair_builds_the_index_again(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"x": range(1000, 1200)}), dataset_uri, max_rows_per_file=100)
    dataset.create_scalar_index("x", IndexConfig("zonemap", {"rows_per_zone": 50}))
    dataset.delete("x = 1149")
    assert dataset.verify().ok
    [segment] = dataset.snapshot.manifest.indices
    store = LocalStore(str(Path(dataset_uri, segment.directory)))
    zones = opened(store).zones
    maxs = pa.array([1049, 1099, 1147, 1199])  # the third zone has rows up to 1148
    store.delete(ZONEMAP)
    write_zones(replace(zones, rows=zones.rows.set_column(1, "max", maxs)), store)
    assert store.size(ZONEMAP) == segment.files[0].size_bytes

    report = lance_ops.dataset(dataset_uri).verify()
    assert report.damaged_indices == ("x_idx",)
    assert "rules out the values of 1 live rows: rows 48" in str(report)
    lance_ops.dataset(dataset_uri).repair(lance_ops.dataset(dataset_uri).plan_repair(report))
    mended = lance_ops.dataset(dataset_uri)
    assert mended.verify().ok
    assert mended.stats.index_stats("x_idx")["indices"] == [{"num_zones": 4, "rows_per_zone": 50}]
