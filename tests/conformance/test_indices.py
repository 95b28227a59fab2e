"""Conformance tests of every index type against a dict with the value of each row address.

A new kind of index joins with its line in `ALL_INDEX_TYPES`, and with one in `SMALL` that makes a few rows many pages.
"""

from __future__ import annotations

import json
import math
import pickle
import struct
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import FrozenBitMap

from lance_ops.core.addresses import TOMBSTONE_ROW
from lance_ops.core.errors import SchemaMismatch, StoreError, UnsupportedFeature
from lance_ops.core.predicate import Column, CompareOp, Literal, Predicate
from lance_ops.core.predicate.binding import build
from lance_ops.core.schema import Field, Schema
from lance_ops.indices import (
    ALL_INDEX_TYPES,
    INDEX_ROW,
    INDEX_VALUE,
    IndexQuery,
    IndexType,
    LoadedIndex,
    RowKey,
    index_type_named,
    index_type_of,
    keys_of,
    load_index,
)
from lance_ops.indices.btree import BTree
from lance_ops.indices.zonemap import ZoneMap
from lance_ops.store import MemoryStore, Store
from lance_ops.store.faulty import Fault, FaultyStore
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows.row_address_map import NewFragment, OldFragment, RewrittenGroup, RowAddressMap
from lance_ops.transactions.manifest_changes import holds_row_addresses

SMALL: dict[str, IndexType[IndexQuery]] = {"BTREE": BTree(page_rows=3, sort_bytes=1000), "ZONEMAP": ZoneMap(3)}

NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8 << 48))[0]
FLOATS = [-math.inf, -1.5, -0.0, 0.0, 0.5, 2.0, math.inf, math.nan, NEGATIVE_NAN]

VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [False, True],
    pa.int8(): [-128, -1, 0, 1, 127],
    pa.int64(): [-(2**63), -1, 0, 7, 2**63 - 1],
    pa.uint64(): [0, 1, 2**63, 2**64 - 1],
    pa.float16(): FLOATS,
    pa.float32(): FLOATS,
    pa.float64(): FLOATS,
    pa.string(): ["", "a", "ab", "ab\0", "abc", "b", "é", "\uffff", "😀"],
    pa.large_string(): ["", "a", "b"],
    pa.binary(): [b"", b"a", b"\xff", b"\xff\xff"],
    pa.large_binary(): [b"", b"a", b"\xff"],
    pa.binary(2): [b"\0\0", b"aa", b"\xff\xff"],
    pa.date32(): [date(1960, 1, 1), date(1970, 1, 1), date(2020, 2, 29)],
    pa.time64("us"): [time(0), time(12, 30), time(23, 59, 59, 999_999)],
    pa.timestamp("us"): [datetime(1960, 1, 1), datetime(2020, 1, 1, 12)],
    pa.timestamp("ms", "UTC"): [datetime(1960, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)],
    pa.duration("ms"): [timedelta(seconds=-1), timedelta(0), timedelta(days=3)],
    pa.decimal128(10, 2): [Decimal("-3.00"), Decimal("0.00"), Decimal("1.20")],
    pa.decimal256(50, 0): [Decimal(-(10**45)), Decimal(0), Decimal(10**45)],
}


def field_of(value_type: pa.DataType) -> Field:
    return Schema.from_arrow(pa.schema([pa.field("x", value_type)])).fields[0]


def can_index(index_type: IndexType[IndexQuery], value_type: pa.DataType) -> bool:
    try:
        index_type.check(field_of(value_type))
    except UnsupportedFeature:
        return False
    return True


TYPES_BY_INDEX = [
    pytest.param(index_type, value_type, id=f"{index_type.name}-{value_type}")
    for index_type in ALL_INDEX_TYPES
    for value_type in VALUES
    if can_index(index_type, value_type)
]
KINDS = {
    each.name: st.sampled_from([value_type for value_type in VALUES if can_index(each, value_type)])
    for each in ALL_INDEX_TYPES
}
INDEX_TYPES = pytest.mark.parametrize("index_type", ALL_INDEX_TYPES, ids=lambda index_type: index_type.name)

Rows = dict[int, Any]
"""The model: a value for each row address."""


@dataclass
class Built:
    """An index of some rows and the directory it is in."""

    index_type: IndexType[IndexQuery]
    value_type: pa.DataType
    store: Store
    metadata: IndexMetadata

    @cached_property
    def loaded(self) -> LoadedIndex[IndexQuery]:
        return self.index_type.load(self.store, self.metadata)

    def rewritten(self, store: Store, files: tuple[IndexFile, ...], fragments: Iterable[int]) -> Built:
        metadata = replace(self.metadata, uuid=uuid.uuid4(), files=files, fragment_bitmap=FrozenBitMap(fragments))
        return replace(self, store=store, metadata=metadata)

    def find(self, predicate: Predicate) -> tuple[set[int], bool] | None:
        """Return the rows found and whether they are all that match and no others; None if it does not serve this."""
        query = self.index_type.serves(predicate)
        if query is None:
            return None
        found = self.loaded.search(pickle.loads(pickle.dumps(query)))
        return set(found.addresses().tolist()), found.exact


def array_of(values: Iterable[Any], value_type: pa.DataType) -> pa.Array:
    if not pa.types.is_float16(value_type):
        return pa.array(list(values), value_type)
    return pa.array([None if value is None else np.float16(value) for value in values], value_type)


def batches_of(rows: Rows, value_type: pa.DataType, batch_rows: int = 4) -> Iterator[pa.RecordBatch]:
    addresses = sorted(rows)
    for start in range(0, len(addresses), batch_rows):
        part = addresses[start : start + batch_rows]
        columns = [array_of((rows[address] for address in part), value_type), pa.array(part, pa.uint64())]
        yield pa.record_batch(columns, names=[INDEX_VALUE, INDEX_ROW])


def train(
    index_type: IndexType[IndexQuery], rows: Rows, value_type: pa.DataType, fragments: Iterable[int] | None = None
) -> Built:
    store = MemoryStore()
    files = index_type.train(batches_of(rows, value_type), field_of(value_type), store)
    covered = {address >> 32 for address in rows} if fragments is None else fragments
    metadata = IndexMetadata(
        uuid.uuid4(), "x_idx", (0,), 1, FrozenBitMap(covered), index_type.details, files=files, created_at_ms=0
    )
    return Built(index_type, value_type, store, metadata)


def matching(rows: Rows, predicate: Predicate, value_type: pa.DataType) -> set[int]:
    """Return the rows that match, by evaluating the predicate on each."""
    addresses = sorted(rows)
    mask = predicate.mask(pa.record_batch([array_of((rows[a] for a in addresses), value_type)], names=["x"]))
    return {address for address, matches in zip(addresses, mask.to_pylist(), strict=True) if matches}


def check(built: Built, rows: Rows, predicate: Predicate) -> None:
    """Compare the rows that the index finds for a supported predicate with the rows that match."""
    answer = built.find(predicate)
    if answer is not None:
        found, exact = answer
        expected = matching(rows, predicate, built.value_type)
        assert found == expected if exact else found >= expected, predicate.to_sql()


def equal_to(value: Any, value_type: pa.DataType) -> Predicate:
    column = Column(("x",), value_type)
    return build.compare(CompareOp.EQ, column, Literal(pa.scalar(value, column.type)))


def small(index_type: IndexType[IndexQuery]) -> IndexType[IndexQuery]:
    return SMALL[index_type.name]


def values_of(value_type: pa.DataType) -> st.SearchStrategy[Any]:
    return st.none() | st.sampled_from(VALUES[value_type])


@cache  # to make a strategy takes longer than to draw from it
def rows_of(value_type: pa.DataType, fragments: range = range(3)) -> st.SearchStrategy[Rows]:
    addresses = st.builds(lambda f, o: f << 32 | o, st.sampled_from(fragments), st.integers(0, 8))
    return st.dictionaries(addresses, values_of(value_type), max_size=25)


@cache
def predicates_on(value_type: pa.DataType) -> st.SearchStrategy[Predicate]:
    """Return a strategy of conditions on the column `x`."""
    column = Column(("x",), value_type)
    literals = st.sampled_from(VALUES[value_type]).map(lambda value: Literal(pa.scalar(value, column.type)))
    comparisons = st.builds(build.compare, st.sampled_from(CompareOp), st.just(column), literals)
    choices = [
        comparisons,
        st.builds(build.is_in, st.just(column), st.lists(literals, min_size=1, max_size=4)),
        st.sampled_from([build.is_null(column), build.negate(build.is_null(column))]),
        st.builds(build.all_of, comparisons, comparisons),
        st.builds(build.any_of, comparisons, comparisons),
    ]
    if pa.types.is_string(value_type):
        patterns = st.text(alphabet="ab%_\uffff", max_size=3).map(lambda text: Literal(pa.scalar(text)))
        choices.append(st.builds(build.like, st.just(column), patterns))
    if pa.types.is_boolean(value_type):
        choices.append(st.sampled_from([build.as_condition(column), build.negate(build.as_condition(column))]))
    return st.one_of(choices)


@cache
def some_predicates_on(value_type: pa.DataType) -> st.SearchStrategy[list[Predicate]]:
    return st.lists(predicates_on(value_type), min_size=1, max_size=4)


@pytest.mark.parametrize(("index_type", "value_type"), TYPES_BY_INDEX)
@settings(max_examples=40)
@given(data=st.data())
def test_a_search_finds_the_rows_that_a_scan_finds(
    index_type: IndexType[IndexQuery], value_type: pa.DataType, data: st.DataObject
) -> None:
    rows = data.draw(rows_of(value_type))
    built = train(small(index_type), rows, value_type)
    for predicate in data.draw(some_predicates_on(value_type)):
        check(built, rows, predicate)


@pytest.mark.parametrize(("index_type", "value_type"), TYPES_BY_INDEX)
@settings(max_examples=40)
@given(data=st.data())
def test_the_entries_are_the_trained_rows_with_their_very_values(
    index_type: IndexType[IndexQuery], value_type: pa.DataType, data: st.DataObject
) -> None:
    rows = data.draw(rows_of(value_type))
    built = train(small(index_type), rows, value_type)
    if not index_type.names_rows:
        with pytest.raises(UnsupportedFeature, match="x_idx"):
            next(built.loaded.entries())
        assert not any(len(built.loaded.contradicted(batch)) for batch in batches_of(rows, value_type))
        return
    entries: dict[int, Any] = {}
    for batch in built.loaded.entries():
        keys = keys_of(batch.column(INDEX_VALUE)).to_pylist()
        for address, key in zip(batch.column(INDEX_ROW).to_pylist(), keys, strict=True):
            assert address not in entries
            entries[address] = key
    keys = keys_of(array_of((rows[address] for address in sorted(rows)), value_type)).to_pylist()
    assert entries == dict(zip(sorted(rows), keys, strict=True))


@INDEX_TYPES
@settings(max_examples=60)
@given(data=st.data())
def test_a_remapped_index_finds_rows_where_they_moved(index_type: IndexType[IndexQuery], data: st.DataObject) -> None:
    value_type = data.draw(KINDS[index_type.name])
    rows = data.draw(rows_of(value_type))
    built = train(small(index_type), rows, value_type, fragments=range(3))
    moved = data.draw(rewrites())
    store_out = MemoryStore()
    files = built.loaded.remap(moved, store_out)
    fragments = {0, 1, 2, 10, 11} - moved.old_fragment_ids
    remapped = built.rewritten(store_out, files, fragments)
    survivors = {int(moved.remap(np.array([address], np.uint64))[0]): value for address, value in rows.items()}
    survivors.pop(TOMBSTONE_ROW, None)
    check(remapped, survivors, data.draw(predicates_on(value_type)))


@INDEX_TYPES
@settings(max_examples=60)
@given(data=st.data())
def test_a_merged_index_finds_the_rows_of_all_parts(index_type: IndexType[IndexQuery], data: st.DataObject) -> None:
    value_type = data.draw(KINDS[index_type.name])
    parts = [data.draw(rows_of(value_type, range(start, start + 2))) for start in (0, 2, 4)]
    segments = [
        train(small(index_type), part, value_type, range(start, start + 2))
        for start, part in zip((0, 2), parts, strict=False)
    ]
    live = data.draw(st.sets(st.integers(0, 3)))
    store_out = MemoryStore()
    new_rows = batches_of(parts[2], value_type)
    files = segments[0].loaded.merge([segments[1].loaded], new_rows, store_out, live_fragments=live)
    merged = segments[0].rewritten(store_out, files, live | {4, 5})
    kept = {address: value for part in parts for address, value in part.items() if address >> 32 in live | {4, 5}}
    check(merged, kept, data.draw(predicates_on(value_type)))


@INDEX_TYPES
def test_an_index_finds_rows_of_covered_fragments_only(index_type: IndexType[IndexQuery]) -> None:
    value_type = next(kind for kind in VALUES if can_index(index_type, kind))
    value = VALUES[value_type][0]
    rows = {fragment << 32 | offset: value for fragment in range(3) for offset in range(2)}
    covered = {address: value for address, value in rows.items() if address >> 32 == 1}
    built = train(small(index_type), rows, value_type, fragments=[1])
    check(built, covered, equal_to(value, value_type))

    store_out = MemoryStore()
    files = built.loaded.merge([], [], store_out, live_fragments=[0, 1, 2])
    check(built.rewritten(store_out, files, [0, 1, 2]), covered, equal_to(value, value_type))


@INDEX_TYPES
def test_merging_segments_that_share_a_fragment_takes_it_from_the_first(index_type: IndexType[IndexQuery]) -> None:
    value_type = next(kind for kind in VALUES if can_index(index_type, kind))
    first, second = VALUES[value_type][:2]
    old, new = ({0: value} for value in (first, second))
    segments = [train(small(index_type), rows, value_type) for rows in (new, old)]
    store_out = MemoryStore()
    files = segments[0].loaded.merge([segments[1].loaded], [], store_out, live_fragments=[0])
    merged = segments[0].rewritten(store_out, files, [0])
    for value in (first, second):
        check(merged, new, equal_to(value, value_type))


@INDEX_TYPES
def test_an_index_is_loaded_from_its_round_tripped_metadata(index_type: IndexType[IndexQuery]) -> None:
    value_type = next(kind for kind in VALUES if can_index(index_type, kind))
    built = train(index_type, {0: VALUES[value_type][0]}, value_type)
    metadata = IndexMetadata.from_pb(built.metadata.to_pb(), "manifest")
    assert pickle.loads(pickle.dumps(metadata)) == metadata
    assert index_type_of(metadata) == index_type
    assert index_type_named(index_type.name.lower()) == index_type
    assert pickle.loads(pickle.dumps(index_type)) == index_type

    root = MemoryStore()
    for file in metadata.files:
        root.put(f"{metadata.directory}/{file.path}", built.store.get(file.path))
        assert built.store.size(file.path) == file.size_bytes
    assert load_index(root, metadata).statistics() == built.loaded.statistics()
    json.dumps(built.loaded.statistics())


@INDEX_TYPES
def test_a_newer_index_version_is_refused(index_type: IndexType[IndexQuery]) -> None:
    value_type = next(kind for kind in VALUES if can_index(index_type, kind))
    built = train(index_type, {}, value_type)
    newer = replace(built.metadata, index_version=index_type.newest_index_version + 1)
    with pytest.raises(UnsupportedFeature, match=r"x_idx.*version"):
        index_type.load(built.store, newer)


@INDEX_TYPES
@pytest.mark.parametrize("stable", [False, True])
def test_the_version_of_a_new_index_decides_how_it_names_rows(index_type: IndexType[IndexQuery], stable: bool) -> None:
    version = index_type.index_version(stable_row_ids=stable)
    assert 0 <= version <= index_type.newest_index_version
    key = index_type.row_key(version, stable_row_ids=stable)
    assert stable or key is RowKey.ADDRESS


@INDEX_TYPES
def test_a_commit_and_a_search_agree_on_how_an_index_of_each_version_names_rows(
    index_type: IndexType[IndexQuery],
) -> None:
    """A commit that took addresses for stable ids would keep entries of rows that a rewrite has moved."""
    for version in range(index_type.newest_index_version + 1):
        metadata = IndexMetadata(
            uuid.uuid4(), "x_idx", (0,), 1, FrozenBitMap(), index_type.details, index_version=version
        )
        names_by_address = index_type.row_key(version, stable_row_ids=True) is RowKey.ADDRESS
        assert holds_row_addresses(metadata) is names_by_address, version


@INDEX_TYPES
def test_a_column_of_an_unsupported_type_is_refused_by_name(index_type: IndexType[IndexQuery]) -> None:
    with pytest.raises(UnsupportedFeature, match="'x'"):
        index_type.check(field_of(pa.struct([pa.field("inner", pa.int8())])))


@INDEX_TYPES
def test_values_of_another_type_are_refused_and_leave_nothing(index_type: IndexType[IndexQuery]) -> None:
    value_type = next(kind for kind in VALUES if can_index(index_type, kind))
    store = MemoryStore()
    wrong = pa.record_batch({INDEX_VALUE: pa.array([{}]), INDEX_ROW: pa.array([0], pa.uint64())})
    with pytest.raises(SchemaMismatch, match="'x'"):
        index_type.train([*batches_of({0: VALUES[value_type][0]}, value_type), wrong], field_of(value_type), store)
    assert not list(store.list())


@INDEX_TYPES
def test_a_store_that_fails_at_any_step_of_training_is_left_empty(index_type: IndexType[IndexQuery]) -> None:
    value_type = next(kind for kind in VALUES if can_index(index_type, kind))
    rows = {offset: VALUES[value_type][offset % 2] for offset in range(20)}
    rehearsal = FaultyStore(MemoryStore())
    index_type.train(batches_of(rows, value_type), field_of(value_type), rehearsal)
    for call in range(1, len(rehearsal.calls) + 1):
        store = FaultyStore(MemoryStore(), Fault(call=call))
        with pytest.raises(StoreError):
            index_type.train(batches_of(rows, value_type), field_of(value_type), store)
        assert not list(store.list()), f"after step {call} of {rehearsal.calls}"


OFFSETS = st.sets(st.integers(0, 8))
FRAGMENTS = st.sets(st.integers(0, 2), min_size=1)


@st.composite
def rewrites(draw: st.DrawFn) -> RowAddressMap:
    """Draw which of the fragments 0, 1 and 2, of nine rows each, were rewritten into 10 and 11."""
    old = tuple(OldFragment(fragment, 9, tuple(sorted(draw(OFFSETS)))) for fragment in sorted(draw(FRAGMENTS)))
    survivors = sum(fragment.num_rows for fragment in old)
    first = draw(st.integers(0, survivors))
    sizes = [(10, first), (11, survivors - first)]
    return RowAddressMap((RewrittenGroup(old, tuple(NewFragment(number, size) for number, size in sizes if size)),))


def test_index_types_that_are_not_implemented_raise_unsupported_feature() -> None:
    with pytest.raises(UnsupportedFeature, match="RTREE"):
        index_type_named("rtree")
    with pytest.raises(ValueError, match="'HASH' is unknown: use one of BTREE"):
        index_type_named("HASH")


def test_an_index_of_an_unknown_kind_is_refused_by_name() -> None:
    metadata = IndexMetadata(uuid.uuid4(), "mystery", (0,), 1, FrozenBitMap())
    with pytest.raises(UnsupportedFeature, match="mystery"):
        index_type_of(metadata)
