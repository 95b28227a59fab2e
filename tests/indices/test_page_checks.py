"""The check of a B-tree's pages accepts what a writer writes, however it is cut, and finds any change of order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lance_ops.core.errors import CorruptFile
from lance_ops.file import FileReader
from lance_ops.indices.btree.layout import PAGE_LOOKUP, data_rows, write_pages
from lance_ops.indices.btree.page_checks import checked_pages
from lance_ops.indices.btree.page_lookup import PageLookup
from lance_ops.store import MemoryStore

VALUES = st.lists(st.none() | st.integers(-5, 5), max_size=40).map(
    lambda values: sorted(values, key=lambda value: (value is not None, value))
)


def rows_of(values: list[int | None], batch_rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(values), batch_rows):
        part = values[start : start + batch_rows]
        yield data_rows(pa.array(part, pa.int64()), pa.array(range(start, start + len(part)), pa.uint64()))


def lookup_of(values: list[int | None], page_rows: int) -> PageLookup:
    """Return the lookup that a writer makes for sorted values."""
    store = MemoryStore()
    write_pages(rows_of(values, 1000), pa.int64(), page_rows, store)
    reader = FileReader(store, PAGE_LOOKUP)
    return PageLookup.from_table(reader.read(), PAGE_LOOKUP)


def passed(values: list[int | None], lookup: PageLookup, batch_rows: int) -> int:
    batches = checked_pages(rows_of(values, batch_rows), len(values), lookup, "page_data")
    return sum(batch.num_rows for batch in batches)


@given(values=VALUES, page_rows=st.integers(1, 7), batch_rows=st.integers(1, 11))
def test_the_pages_of_a_writer_pass_however_they_are_cut_into_batches(
    values: list[int | None], page_rows: int, batch_rows: int
) -> None:
    assert passed(values, lookup_of(values, page_rows), batch_rows) == len(values)


@given(values=VALUES, page_rows=st.integers(1, 7), batch_rows=st.integers(1, 11), data=st.data())
def test_two_rows_in_each_others_place_are_found(
    values: list[int | None], page_rows: int, batch_rows: int, data: st.DataObject
) -> None:
    assume(len(set(values)) > 1)
    lookup = lookup_of(values, page_rows)
    first, second = (data.draw(st.integers(0, len(values) - 1)) for _ in range(2))
    assume(values[first] != values[second])
    values[first], values[second] = values[second], values[first]
    with pytest.raises(CorruptFile, match="page_data"):
        passed(values, lookup, batch_rows)


@given(values=VALUES, page_rows=st.integers(1, 7), batch_rows=st.integers(1, 11))
def test_another_number_of_nulls_than_the_lookup_has_is_found(
    values: list[int | None], page_rows: int, batch_rows: int
) -> None:
    lookup = lookup_of(values, page_rows)
    with pytest.raises(CorruptFile, match="nulls where page_lookup has"):
        passed(values, replace(lookup, num_nulls=lookup.num_nulls + 1), batch_rows)


@given(values=VALUES, page_rows=st.integers(1, 7), batch_rows=st.integers(1, 11), data=st.data())
def test_a_value_beyond_its_pages_bounds_is_found(
    values: list[int | None], page_rows: int, batch_rows: int, data: st.DataObject
) -> None:
    assume(values)
    lookup = lookup_of(values, page_rows)
    page = data.draw(st.integers(0, lookup.num_pages - 1))
    mins = list(lookup.mins)
    mins[page] = 99
    with pytest.raises(CorruptFile, match=f"page {page}: does not begin"):
        passed(values, replace(lookup, mins=tuple(mins)), batch_rows)
