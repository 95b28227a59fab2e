"""Read 2.1 and 2.2 files: a column for every leaf, levels for the nesting."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import CorruptFile, InvalidInput, LanceOpsError
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.records import changed_copy, dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.file.container import MAX_ROWS, Column, PlainColumns
from lance_ops.file.container_file import ContainerFile
from lance_ops.file.leaves import Leaf, leaves_of, leaves_of_field, number_leaves
from lance_ops.file.open_file import ColumnPart, EqualPart, LeafPage
from lance_ops.file.page_reading import (
    Budget,
    FileSource,
    PageRows,
    RowSelection,
    Steps,
    cut_rows,
    naming_place,
    row_bytes,
    shared_boundaries,
    split_rows,
)
from lance_ops.file.v2_1.assembly import assemble, concat_rows
from lance_ops.file.v2_1.layouts import EqualColumns, LeafRows, PageLayout, SameColumns
from lance_ops.file.v2_1.page_reader import open_page, read_pages

__all__ = ["V21File"]


@dataclass(frozen=True)
class _LeafColumn:
    """A column to read, and its index; `as_described`: blobs are read as their positions and sizes."""

    index: int
    column: Column
    page_starts: Sequence[int]
    as_described: bool


@dataclass(frozen=True)
class _FieldColumns:
    """The columns of a top-level field."""

    columns: Sequence[_LeafColumn]

    @cached_property
    def shared_boundaries(self) -> Sequence[int]:
        """The rows at which pages of all columns end."""
        return shared_boundaries([column.page_starts for column in self.columns])


_LEAST_TOGETHER, _MOST_TOGETHER = 8, 128
"""Fewer columns are read one by one. More are decoded in several calls, which takes less memory, and in threads."""

_MAX_TOGETHER_BYTES = 32 * 1024
"""A column of which more is read is read on its own: the cost of a call no longer matters, and threads do."""


@dataclass(frozen=True)
class _Together:
    """Equal columns, and the places of their fields among those that are read."""

    places: Sequence[int]
    columns: EqualColumns | SameColumns


class _Groups(NamedTuple):
    """Which of some fields are read together, by reads of at most `max_rows` rows; the others are read alone."""

    fields: Sequence[Field]
    max_rows: int
    groups: Sequence[_Together]


class V21File(ContainerFile):
    """An open file of version 2.1 or 2.2."""

    def __init__(self, source: FileSource, tail: bytes) -> None:
        super().__init__(source, tail)
        self._leaves, self.field_ids, self._index_of = number_leaves(self.schema)
        self._check_num_columns()
        self._pages: dict[tuple[int, int, bool], PageLayout] = {}
        self._field_columns: dict[Field, _FieldColumns] = {}
        self._last_groups: list[_Groups] = []
        """One item, the groups of the last read of many fields, once there was one."""

    def read_from(self, source: FileSource) -> V21File:
        """Return the same file read from another source of the same bytes; both keep what either decodes."""
        return changed_copy(self, source=source, path=source.name)

    def read_anew(self, source: FileSource) -> V21File:
        """Return the same file read from another source, without what was decoded outside of the metadata."""
        file = self.read_from(source)
        file._pages, file._last_groups = {}, []
        return file

    def encoded_bytes(self, schema: Schema) -> int:
        return sum(column.size_bytes for column in self._load_columns([self._find(leaf) for leaf in leaves_of(schema)]))

    def prefetch_metadata(self, fields: Sequence[Field]) -> None:
        missing = [field for field in fields if field not in self._field_columns] if len(fields) > 1 else []
        if missing:
            self._load_columns([self._find(leaf) for field in missing for leaf in leaves_of_field(field)])

    def load_metadata(self, field: Field) -> None:
        for column in self._columns_of(field).columns:
            if column.column.pages:
                self._layout(column, 0)

    def column_parts(self, field: Field, rows: RowSelection, budget: Budget) -> list[ColumnPart]:
        columns = self._columns_of(field)
        parts: list[ColumnPart] = []
        for part in cut_rows(rows, self._boundaries(rows, columns)):
            steps: list[Steps[LeafRows]] = []
            counts = []
            for column in columns.columns:
                groups = self._group_pages(column, split_rows(part, column.page_starts))
                counts.append(len(groups))
                for group in groups:
                    layouts, wanted = [layout for layout, _ in group], [page.rows for _, page in group]
                    place = self._place(column.index, group[0][1].page)
                    steps.append(read_pages(layouts, wanted, budget, self.path, place))
            parts.append(ColumnPart(steps, self._assembler(field, counts)))
        return parts

    def equal_parts(self, fields: Sequence[Field], rows: RowSelection, budget: Budget) -> list[EqualPart]:
        if len(fields) < _LEAST_TOGETHER or not rows.count:
            return []
        last = self._last_groups[0] if self._last_groups else None
        if last is None or rows.count > last.max_rows or last.fields != fields:
            last = self._group_fields(fields, rows.count)
            self._last_groups[:] = [last]
        return [EqualPart(group.places, self._read_together(group, rows, budget)) for group in last.groups]

    def pages(self, fields: Sequence[Field], rows: RowSelection) -> list[list[list[tuple[LeafPage, RowSelection]]]]:
        self.prefetch_metadata(fields)
        return [
            [
                [(self._layout(column, part.page), part.rows) for part in split_rows(rows, column.page_starts)]
                for column in self._columns_of(field).columns
            ]
            for field in fields
        ]

    def describe(self, index: int) -> list[tuple[str, ...]]:
        (column,) = self._load_columns([index])
        return [tuple(self._page(index, column, page).encodings()) for page in range(len(column.pages))]

    def _group_fields(self, fields: Sequence[Field], num_rows: int) -> _Groups:
        """Group the fields whose columns are equal and short, and load the columns of the other fields."""
        places: dict[str, list[int]] = {}
        for place, field in enumerate(fields):
            index = self._index_of.get(field.id)
            if index is not None and index not in self._columns and _is_same(self._leaves[index], field):
                places.setdefault(field.logical_type, []).append(place)
        max_rows, found, alone = MAX_ROWS, [], set(range(len(fields)))
        for of_type in places.values():
            rows = _most_rows(fields[of_type[0]].arrow_type)
            if len(of_type) >= _LEAST_TOGETHER and num_rows <= rows:
                max_rows = min(max_rows, rows)
                found.append(of_type)
                alone.difference_update(of_type)
        if not found:
            return _Groups(fields, max_rows, ())
        indices = [self._index_of[fields[place].id] for of_type in found for place in of_type]
        types = np.arange(len(found)).repeat([len(of_type) for of_type in found])
        num_alike = len(indices)
        for place in sorted(alone):
            indices += [self._find(leaf) for leaf in leaves_of_field(fields[place])]
        plain = self._load_plain_columns(indices)
        plain.kind_of[plain.lengths != self.num_rows] = -1
        groups, grouped = [], np.zeros(len(indices), np.bool_)
        every = np.array([place for of_type in found for place in of_type])
        keys = np.where(plain.kind_of[:num_alike] < 0, -1, plain.kind_of[:num_alike] + types * len(plain.pages))
        for key in np.unique(keys[keys >= 0]).tolist():
            chosen = np.flatnonzero(keys == key)
            for columns, equal in self._equal_columns(plain, chosen, indices):
                groups.append(_Together(every[columns].tolist(), equal))
                grouped[columns] = True
        rest = [at for at in np.flatnonzero(~grouped).tolist() if indices[at] not in self._columns]
        self._parse_columns([indices[at] for at in rest], [plain.message(at) for at in rest])
        return _Groups(fields, max_rows, groups)

    def _equal_columns(
        self, plain: PlainColumns, chosen: Int64Array, indices: Sequence[int]
    ) -> Iterator[tuple[Int64Array, EqualColumns | SameColumns]]:
        """Yield columns of one type and kind in groups that one call decodes; none if they are few or unlike."""
        if len(chosen) < _LEAST_TOGETHER:
            return
        first = int(chosen[0])
        described, leaf = plain.pages[int(plain.kind_of[first])], self._leaves[indices[first]]
        with suppress(LanceOpsError):  # raised again when the columns are read on their own
            page = open_page(described, leaf, self.source.size_bytes, self.path, "")
            if not described.buffers:
                yield chosen, SameColumns(page, len(chosen))
                return
            for columns in np.array_split(chosen, -(-len(chosen) // _MOST_TOGETHER)):
                equal = EqualColumns.of(page, plain.buffers[columns])
                if equal is not None:
                    yield columns, equal

    def _read_together(self, group: _Together, rows: RowSelection, budget: Budget) -> Steps[Sequence[pa.Array]]:
        with naming_place(self.path, "columns that are read together"):
            return (yield from group.columns.read(rows, budget))

    def _columns_of(self, field: Field) -> _FieldColumns:
        found = self._field_columns.get(field)
        if found is None:
            leaves = leaves_of_field(field)
            indices = [self._find(leaf) for leaf in leaves]
            columns = [
                _LeafColumn(index, column, self._page_starts(index, column), self._is_described(leaf, index))
                for leaf, index, column in zip(leaves, indices, self._load_columns(indices), strict=True)
            ]
            found = self._field_columns[field] = _FieldColumns(columns)
        return found

    def _boundaries(self, rows: RowSelection, columns: _FieldColumns) -> Sequence[int]:
        """Return where rows are cut into parts: at shared page boundaries, unless all columns decode across them."""
        shared = columns.shared_boundaries
        if len(shared) <= 2 or not rows.count:
            return shared
        first, last = bisect_right(shared, rows.first) - 1, bisect_right(shared, rows.last)
        inner = [at for at in shared[first + 1 : last] if not all(self._decodes_across(c, at) for c in columns.columns)]
        return [shared[first], *inner, shared[last]]

    def _decodes_across(self, column: _LeafColumn, boundary: int) -> bool:
        """Return whether the pages on both sides of a boundary are decoded by one call."""
        before = self._layout(column, bisect_left(column.page_starts, boundary) - 1)
        return before.decodes_with(self._layout(column, bisect_right(column.page_starts, boundary) - 1))

    def _group_pages(self, column: _LeafColumn, pages: Sequence[PageRows]) -> list[list[tuple[PageLayout, PageRows]]]:
        """Group consecutive pages that are decoded by one call."""
        groups: list[list[tuple[PageLayout, PageRows]]] = []
        for page in pages:
            layout = self._layout(column, page.page)
            if groups and layout.decodes_with(groups[-1][-1][0]):
                groups[-1].append((layout, page))
            else:
                groups.append([(layout, page)])
        return groups

    def _layout(self, column: _LeafColumn, page: int) -> PageLayout:
        return self._page(column.index, column.column, page, as_described=column.as_described)

    def _find(self, leaf: Leaf) -> int:
        index = self._index_of.get(leaf.field.id)
        if index is None:
            raise InvalidInput(f"{self.path} has no column for field {leaf.field.name!r} (id {leaf.field.id})")
        return index

    def _page_starts(self, index: int, column: Column) -> tuple[int, ...]:
        """Return the first row of each page of a column and the end of the last page."""
        factor = self._leaves[index].elements_per_row
        starts = column.page_starts
        if (factor > 1 and any(start % factor for start in starts)) or starts[-1] != self.num_rows * factor:
            place = f"column {index}"
            raise CorruptFile(self.path, place, f"pages of {starts[-1]} elements for {self.num_rows} rows")
        return starts if factor == 1 else tuple(start // factor for start in starts)

    def _is_described(self, wanted: Leaf, index: int) -> bool:
        """Return whether the caller asks for the positions and sizes of blobs, not for their bytes."""
        return bool(wanted.field.children) and self._leaves[index].field.is_blob_v1

    def _page(self, index: int, column: Column, page: int, *, as_described: bool = False) -> PageLayout:
        layout = self._pages.get((index, page, as_described))
        if layout is None:
            leaf = self._leaves[index]
            if as_described:
                leaf = replace(leaf, field=leaf.field.described())
            layout = open_page(column.pages[page], leaf, self.source.size_bytes, self.path, self._place(index, page))
            self._pages[index, page, as_described] = layout
        return layout

    def _place(self, index: int, page: int) -> str:
        return f"column {index} ({self._leaves[index].field.name}), page {page}"

    def _assembler(self, field: Field, counts: Sequence[int]) -> Callable[[Sequence[LeafRows]], pa.Array]:
        """Return what makes a field's array of its leaves' rows; leaf `i` comes in `counts[i]` groups of pages."""

        def to_array(groups: Sequence[LeafRows]) -> pa.Array:
            leaves = []
            start = 0
            for count in counts:
                leaves.append(groups[start : start + count])
                start += count
            with naming_place(self.path, f"column {field.name!r}"):
                return assemble(field, [concat_rows(leaf) for leaf in leaves])

        return to_array


def _is_same(leaf: Leaf, wanted: Field) -> bool:
    """Return whether a leaf is a column of its own, with values of the wanted type."""
    return len(leaf.steps) == 1 and leaf.field.logical_type == wanted.logical_type


def _most_rows(arrow_type: pa.DataType) -> int:
    """Return how many rows a column of this type is short for; 0 if its columns are never read together.

    Such a type has children, a dictionary, or bytes, which may be blobs.
    """
    if pt.is_primitive(arrow_type) or pt.is_boolean(arrow_type) or pt.is_string(arrow_type):
        return _MAX_TOGETHER_BYTES // row_bytes(arrow_type)
    return 0
