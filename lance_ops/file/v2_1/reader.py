"""Read 2.1 and 2.2 files: a column for every leaf, levels for the nesting."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.core.schema import Field, Schema
from lance_ops.file.container import Column
from lance_ops.file.container_file import ContainerFile
from lance_ops.file.leaves import Leaf, leaves_of, leaves_of_field, number_leaves
from lance_ops.file.open_file import ColumnPart, LeafPage
from lance_ops.file.page_reading import (
    Budget,
    FileSource,
    PageRows,
    RowSelection,
    Steps,
    cut_rows,
    naming_place,
    shared_boundaries,
    split_rows,
)
from lance_ops.file.v2_1.assembly import assemble, concat_rows
from lance_ops.file.v2_1.layouts import LeafRows, PageLayout
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


class V21File(ContainerFile):
    """An open file of version 2.1 or 2.2."""

    def __init__(self, source: FileSource, tail: bytes) -> None:
        super().__init__(source, tail)
        self._leaves, self.field_ids, self._index_of = number_leaves(self.schema)
        self._check_num_columns()
        self._pages: dict[tuple[int, int, bool], PageLayout] = {}
        self._field_columns: dict[Field, _FieldColumns] = {}

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
