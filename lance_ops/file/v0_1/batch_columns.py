"""Read the pages of 0.1 files: a page for every field and batch.

    fixed width     the values side by side; booleans a bit each, lowest first; fixed-size lists flattened
    byte strings    i64 positions in the file, one more than there are values; the page's position is theirs
    lists           i32 (large: i64) offsets, one more than there are lists; items are the child's page of that batch
    dictionaries    keys; the values come with the field asked for, or are where the file's own schema says
    structs, nulls  no page

There is no validity. In a nullable field an empty string is read as null.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import is_text_or_bytes
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.schema import Field, Schema
from lance_ops.encodings import VariableWidth, check, gather_ranges
from lance_ops.file.arrow_values import array_of, bits_per_value_of
from lance_ops.file.open_file import ColumnPart
from lance_ops.file.page_reading import (
    Budget,
    Extent,
    FileSource,
    PageRows,
    Ranges,
    RowSelection,
    RowSet,
    RowSlice,
    Steps,
    combine_steps,
    naming_place,
    read_flat_values,
    rows_of_runs,
    split_rows,
)
from lance_ops.file.v0_1.page_table import PageTable

__all__ = ["BatchColumns"]

_PART_ROWS = 1 << 17
"""Batches have about a thousand rows; arrays of several batches are joined up to about this many rows."""

_MAX_ELEMENTS = 1 << 48


class BatchColumns:
    """The columns of one file, or those of its statistics."""

    def __init__(
        self,
        source: FileSource,
        schema: Schema,
        batch_offsets: Int64Array,
        table: PageTable,
        *,
        holds_dictionaries: bool,
    ) -> None:
        self._path = source.name
        self._size_bytes = source.size_bytes
        self._fields = {node.id: node for node in schema.walk()}
        self._offsets = tuple(batch_offsets.tolist())
        self._table = table
        self._holds_dictionaries = holds_dictionaries
        self._dictionaries: dict[int, pa.Array] = {}

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The id of each column's field."""
        return tuple(self._fields)

    def describe(self, index: int) -> list[tuple[str, ...]]:
        """Name the encoding of each page of a column."""
        field = list(self._fields.values())[index]
        with naming_place(self._path, f"column {field.name!r}"):
            return [(_kind(field),)] * (len(self._offsets) - 1)

    def parts(self, field: Field, rows: RowSelection, budget: Budget) -> list[ColumnPart]:
        """Return the reads of a field's wanted rows, as `OpenFile.column_parts` does."""
        for node in field.walk():
            if node.id not in self._fields:
                raise InvalidInput(f"{self._path} has no column for field {node.name!r} (id {node.id})")
        parts: list[ColumnPart] = []
        for _, batches in groupby(split_rows(rows, self._offsets), lambda b: self._offsets[b.page] // _PART_ROWS):
            steps: list[Steps[Any]] = [self._read_batch(field, batch, budget) for batch in batches]
            parts.append(ColumnPart(steps, lambda arrays: pa.concat_arrays(arrays) if len(arrays) > 1 else arrays[0]))
        return parts

    def dictionary_values(self, field_id: int) -> Steps[pa.Array]:
        """Read the values that the file itself holds of a dictionary column."""
        with naming_place(self._path, f"dictionary of field {field_id}"):
            return (yield from self._read_dictionary_values(self._fields[field_id]))

    def _read_batch(self, field: Field, batch: PageRows, budget: Budget) -> Steps[pa.Array]:
        with naming_place(self._path, f"column {field.name!r}, batch {batch.page}"):
            found = yield from self._read(field, batch.page, batch.rows, budget)
            budget.spend(found.nbytes)
            return found

    def _read(self, field: Field, batch: int, rows: RowSelection, budget: Budget) -> Steps[pa.Array]:
        if not rows.count:
            return pa.nulls(0, field.arrow_type)
        match _kind(field):
            case "struct":
                children = yield from combine_steps(
                    [self._read(child, batch, rows, budget) for child in field.children]
                )
                return pa.Array.from_buffers(field.arrow_type, rows.count, [None], children=children)
            case "null":
                return pa.nulls(rows.count)
            case "list":
                return (yield from self._read_lists(field, batch, rows, budget))
            case "dictionary":
                return (yield from self._read_dictionary(field, batch, rows))
            case "binary":
                return (yield from self._read_strings(field, self._page(field, batch, rows), rows, field.nullable))
        return (yield from self._read_plain(field.arrow_type, self._page(field, batch, rows), rows))

    def _read_plain(self, arrow_type: pa.DataType, page: tuple[int, int], rows: RowSelection) -> Steps[pa.Array]:
        if pt.is_fixed_size_list(arrow_type):
            size = arrow_type.list_size
            items = yield from self._read_plain(arrow_type.value_type, (page[0], page[1] * size), rows.scaled(size))
            return pa.Array.from_buffers(arrow_type, rows.count, [None], children=[items])
        values = yield from read_flat_values(
            self._extent(page, bits_per_value_of(arrow_type)), bits_per_value_of(arrow_type), rows
        )
        return array_of(values, arrow_type)

    def _read_strings(
        self, field: Field, page: tuple[int, int], rows: RowSelection, empty_is_null: bool
    ) -> Steps[pa.Array]:
        arrow_type = field.arrow_type.value_type if pt.is_dictionary(field.arrow_type) else field.arrow_type
        starts, stops = yield from self._read_bounds(page, 64, rows)
        check(int(stops.max()) <= self._size_bytes, "a string that ends beyond the file")
        sizes = stops - starts
        fetched = yield Ranges(starts, stops)
        is_filled = sizes > 0
        data = gather_ranges(fetched.data, fetched.locate(starts[is_filled]), sizes[is_filled])
        values = VariableWidth(np.append(0, np.cumsum(sizes)), data)
        return array_of(values, arrow_type, None if is_filled.all() or not empty_is_null else is_filled)

    def _read_lists(self, field: Field, batch: int, rows: RowSelection, budget: Budget) -> Steps[pa.Array]:
        (child,) = field.children
        wide = pt.is_large_list(field.arrow_type)
        position, length = self._page(field, batch, rows, extra=1)
        starts, stops = yield from self._read_bounds((position, length - 1), 64 if wide else 32, rows)
        lengths = stops - starts
        offsets = np.append(0, np.cumsum(lengths))
        budget.expect_items(int(offsets[-1]), len(starts), child.arrow_type)
        items = yield from self._read(child, batch, rows_of_runs(starts, lengths), budget)
        buffer = pa.py_buffer(offsets if wide else offsets.astype(np.int32))
        return pa.Array.from_buffers(field.arrow_type, rows.count, [None, buffer], children=[items])

    def _read_dictionary(self, field: Field, batch: int, rows: RowSelection) -> Steps[pa.Array]:
        keys = yield from self._read_plain(field.arrow_type.index_type, self._page(field, batch, rows), rows)
        shared = field.dictionary  # from the table's manifest: all its files share these values
        values = self._dictionaries.get(field.id) if shared is None or shared.values is None else shared.values
        if values is None:
            values = yield from self._read_dictionary_values(field)
            self._dictionaries[field.id] = values
        return pa.DictionaryArray.from_arrays(keys, values, ordered=field.arrow_type.ordered)

    def _read_dictionary_values(self, field: Field) -> Steps[pa.Array]:
        stored = self._fields[field.id].dictionary
        if not self._holds_dictionaries or stored is None:
            raise UnsupportedFeature(f"the dictionary of column {field.name!r}, which is outside of the data file")
        position, length = stored.offset, stored.length
        check(0 <= position <= self._size_bytes and length >= 0, "a dictionary outside of the file")
        value_type = field.arrow_type.value_type
        if not length:
            return pa.nulls(0, value_type)
        if is_text_or_bytes(value_type):
            return (yield from self._read_strings(field, (position, length), RowSlice(0, length), empty_is_null=True))
        return (yield from self._read_plain(value_type, (position, length), RowSlice(0, length)))

    def _read_bounds(
        self, page: tuple[int, int], bits: int, rows: RowSelection
    ) -> Steps[tuple[Int64Array, Int64Array]]:
        """Read where the wanted values start and stop, from a page that has one bound more than values."""
        position, length = page
        extent = self._extent((position, length + 1), bits)
        if isinstance(rows, RowSlice):
            found = yield from read_flat_values(extent, bits, RowSlice(rows.start, rows.stop + 1))
            bounds = found.data.view(f"<i{bits // 8}").astype(np.int64)
            starts, stops = bounds[:-1], bounds[1:]
        else:
            needed = np.union1d(rows.indices, rows.indices + 1)
            found = yield from read_flat_values(extent, bits, RowSet(needed))
            bounds = found.data.view(f"<i{bits // 8}").astype(np.int64)
            at = np.searchsorted(needed, rows.indices)
            starts, stops = bounds[at], bounds[at + 1]
        check(int(starts.min()) >= 0 and (starts <= stops).all(), "bounds that do not ascend")
        return starts, stops

    def _page(self, field: Field, batch: int, rows: RowSelection, extra: int = 0) -> tuple[int, int]:
        """Return a page's position and number of elements, which must be `extra` more than the wanted rows need."""
        position, length = self._table.page(field.id, batch)
        check(rows.last + extra < length, f"row {rows.last} of a page of {length}")
        return position, length

    def _extent(self, page: tuple[int, int], bits: int) -> Extent:
        position, length = page
        check(length <= _MAX_ELEMENTS, f"a page of {length} elements")
        extent = Extent(position, -(-length * bits // 8))
        check(extent.end <= self._size_bytes, "a page that ends beyond the file")
        return extent


def _kind(field: Field) -> str:
    """Name the encoding of a field's pages."""
    kind = field.logical_type.partition(":")[0]
    if kind in ("struct", "null"):
        return kind
    if kind in ("list", "list.struct", "large_list", "large_list.struct"):
        return "list"
    if kind == "dict":
        return "dictionary"
    if is_text_or_bytes(field.arrow_type):
        return "binary"
    if field.children:
        raise UnsupportedFeature(f"{field.logical_type} in 0.1 files", f"column {field.name!r}")
    return "plain"
