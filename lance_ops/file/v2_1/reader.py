"""Reading 2.1 and 2.2 files: a column for every leaf, levels for the nesting."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.core.schema import Field, Schema
from lance_ops.file.budget import Budget
from lance_ops.file.container import Column
from lance_ops.file.decoding_errors import reporting
from lance_ops.file.leaves import Leaf, leaves_of, leaves_of_field, number_leaves
from lance_ops.file.opened import Chunk, Columns, LoadColumns
from lance_ops.file.plan import PageRows, cut_rows, shared_boundaries, split_rows
from lance_ops.file.rows import Rows
from lance_ops.file.source import Steps
from lance_ops.file.v2_1.assembly import assemble, concat_rows
from lance_ops.file.v2_1.layouts import LeafRows, PageLayout
from lance_ops.file.v2_1.pages import open_page, read_pages

__all__ = ["StructuralColumns"]


@dataclass(frozen=True)
class _Wanted:
    """A column to read: its number, the first row of each of its pages, and whether its blobs are only described."""

    index: int
    column: Column
    page_starts: Sequence[int]
    as_described: bool


@dataclass(frozen=True)
class _Root:
    """The columns of a top-level field, and where pages of all of them end."""

    columns: Sequence[_Wanted]

    @cached_property
    def shared(self) -> Sequence[int]:
        return shared_boundaries([column.page_starts for column in self.columns])


class StructuralColumns(Columns):
    """The columns of one file, opened as far as they were needed."""

    def __init__(self, path: str, schema: Schema, num_rows: int, size_bytes: int, load: LoadColumns) -> None:
        self._path = path
        self._num_rows = num_rows
        self._size_bytes = size_bytes
        self._load = load
        self._leaves, self._field_ids, self._index_of = number_leaves(schema)
        self._pages: dict[tuple[int, int, bool], PageLayout] = {}
        self._roots: dict[Field, _Root] = {}

    @property
    def field_ids(self) -> tuple[int, ...]:
        return self._field_ids

    def encoded_bytes(self, schema: Schema) -> int:
        return sum(column.size_bytes for column in self._load([self._find(leaf) for leaf in leaves_of(schema)]))

    def expect(self, fields: Sequence[Field]) -> None:
        missing = [field for field in fields if field not in self._roots] if len(fields) > 1 else []
        if missing:
            self._load([self._find(leaf) for field in missing for leaf in leaves_of_field(field)])

    def load(self, field: Field) -> None:
        for column in self._root(field).columns:
            if column.column.pages:
                self._layout(column, 0)

    def tasks(self, field: Field, rows: Rows, budget: Budget) -> list[Chunk]:
        root = self._root(field)
        chunks: list[Chunk] = []
        for part in cut_rows(rows, self._cuts(rows, root)):
            steps: list[Steps[LeafRows]] = []
            counts = []
            for column in root.columns:
                runs = self._runs(column, split_rows(part, column.page_starts))
                counts.append(len(runs))
                for run in runs:
                    layouts, wanted = [layout for layout, _ in run], [page.rows for _, page in run]
                    place = self._place(column.index, run[0][1].page)
                    steps.append(read_pages(layouts, wanted, budget, self._path, place))
            chunks.append((steps, self._assembler(field, counts)))
        return chunks

    def pages(self, field: Field, rows: Rows) -> list[list[tuple[PageLayout, Rows]]]:
        """Return, for each column of a field, the pages that have some of the rows, and which of their own."""
        return [
            [(self._layout(column, part.page), part.rows) for part in split_rows(rows, column.page_starts)]
            for column in self._root(field).columns
        ]

    def _root(self, field: Field) -> _Root:
        root = self._roots.get(field)
        if root is None:
            leaves = leaves_of_field(field)
            indices = [self._find(leaf) for leaf in leaves]
            columns = [
                _Wanted(index, column, self._page_starts(index, column), self._is_described(leaf, index))
                for leaf, index, column in zip(leaves, indices, self._load(indices), strict=True)
            ]
            root = self._roots[field] = _Root(columns)
        return root

    def _cuts(self, rows: Rows, root: _Root) -> Sequence[int]:
        """Return where rows are cut into chunks: where pages of all columns end, unless all go on in their kin."""
        shared, columns = root.shared, root.columns
        if len(shared) <= 2 or not rows.count:
            return shared
        first, last = bisect_right(shared, rows.first) - 1, bisect_right(shared, rows.last)
        inner = [at for at in shared[first + 1 : last] if not all(self._goes_on(column, at) for column in columns)]
        return [shared[first], *inner, shared[last]]

    def _goes_on(self, column: _Wanted, at: int) -> bool:
        """Return whether the pages on both sides of a boundary can be read as one."""
        before = self._layout(column, bisect_left(column.page_starts, at) - 1)
        return before.is_kin_of(self._layout(column, bisect_right(column.page_starts, at) - 1))

    def _runs(self, column: _Wanted, pages: Sequence[PageRows]) -> list[list[tuple[PageLayout, PageRows]]]:
        """Group pages that are read as one."""
        runs: list[list[tuple[PageLayout, PageRows]]] = []
        for page in pages:
            layout = self._layout(column, page.page)
            if runs and layout.is_kin_of(runs[-1][-1][0]):
                runs[-1].append((layout, page))
            else:
                runs.append([(layout, page)])
        return runs

    def _layout(self, column: _Wanted, page: int) -> PageLayout:
        return self._page(column.index, column.column, page, as_described=column.as_described)

    def describe(self, index: int) -> list[tuple[str, ...]]:
        (column,) = self._load([index])
        return [tuple(self._page(index, column, page).encodings()) for page in range(len(column.pages))]

    def _find(self, leaf: Leaf) -> int:
        index = self._index_of.get(leaf.field.id)
        if index is None:
            raise InvalidInput(f"{self._path} has no column for field {leaf.field.name!r} (id {leaf.field.id})")
        return index

    def _page_starts(self, index: int, column: Column) -> tuple[int, ...]:
        """Return the first row of each page of a column and the end of the last."""
        factor = self._leaves[index].elements_per_row
        starts = column.page_starts
        if (factor > 1 and any(start % factor for start in starts)) or starts[-1] != self._num_rows * factor:
            place = f"column {index}"
            raise CorruptFile(self._path, place, f"pages of {starts[-1]} elements for {self._num_rows} rows")
        return starts if factor == 1 else tuple(start // factor for start in starts)

    def _is_described(self, wanted: Leaf, index: int) -> bool:
        """Return whether blobs are asked for as their positions and sizes."""
        return bool(wanted.field.children) and self._leaves[index].field.is_blob_v1

    def _page(self, index: int, column: Column, page: int, *, as_described: bool = False) -> PageLayout:
        layout = self._pages.get((index, page, as_described))
        if layout is None:
            place = self._place(index, page)
            leaf = self._leaves[index]
            if as_described:
                leaf = replace(leaf, field=leaf.field.described())
            layout = open_page(column.pages[page], leaf, self._size_bytes, self._path, place)
            self._pages[index, page, as_described] = layout
        return layout

    def _place(self, index: int, page: int) -> str:
        return f"column {index} ({self._leaves[index].field.name}), page {page}"

    def _assembler(self, field: Field, counts: Sequence[int]) -> Callable[[Sequence[LeafRows]], pa.Array]:
        def build(parts: Sequence[LeafRows]) -> pa.Array:
            leaves = []
            at = 0
            for count in counts:
                leaves.append(parts[at : at + count])
                at += count
            with reporting(self._path, f"column {field.name!r}"):
                return assemble(field, [concat_rows(leaf) for leaf in leaves])

        return build
