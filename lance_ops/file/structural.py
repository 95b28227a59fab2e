"""Reading 2.1 and 2.2 files: a column for every leaf, levels for the nesting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.core.schema import Field, Schema
from lance_ops.file.assemble import assemble, concat_rows
from lance_ops.file.budget import Budget
from lance_ops.file.columns import Leaf, leaves_of, leaves_of_field
from lance_ops.file.container import Column
from lance_ops.file.layouts.contract import LeafRows, PageLayout
from lance_ops.file.opened import Chunk, Columns, LoadColumns
from lance_ops.file.pages import open_page, read_page, reporting
from lance_ops.file.plan import cut_rows, shared_boundaries, split_rows
from lance_ops.file.rows import Rows
from lance_ops.file.source import Steps

__all__ = ["StructuralColumns"]


class StructuralColumns(Columns):
    """The columns of one file, opened as far as they were needed."""

    def __init__(self, path: str, schema: Schema, num_rows: int, size_bytes: int, load: LoadColumns) -> None:
        self._path = path
        self._num_rows = num_rows
        self._size_bytes = size_bytes
        self._load = load
        self._leaves = leaves_of(schema)
        self._index_of = {leaf.field.id: index for index, leaf in enumerate(self._leaves)}
        self._pages: dict[tuple[int, int, bool], PageLayout] = {}

    @property
    def num_columns(self) -> int:
        return len(self._leaves)

    def encoded_bytes(self, schema: Schema) -> int:
        return sum(column.size_bytes for column in self._load([self._find(leaf) for leaf in leaves_of(schema)]))

    def tasks(self, field: Field, rows: Rows, budget: Budget) -> list[Chunk]:
        leaves = list(leaves_of_field(field))
        indices = [self._find(leaf) for leaf in leaves]
        columns = self._load(indices)
        starts = [self._page_starts(index, column) for index, column in zip(indices, columns, strict=True)]
        chunks: list[Chunk] = []
        for part in cut_rows(rows, shared_boundaries(starts)):
            steps: list[Steps[LeafRows]] = []
            counts = []
            for leaf, index, column, page_starts in zip(leaves, indices, columns, starts, strict=True):
                pages = split_rows(part, page_starts)
                counts.append(len(pages))
                for page in pages:
                    layout = self._page(index, column, page.page, as_described=self._is_described(leaf, index))
                    steps.append(read_page(layout, page.rows, budget, self._path, self._place(index, page.page)))
            chunks.append((steps, self._assembler(field, counts)))
        return chunks

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
        if any(start % factor for start in starts) or starts[-1] != self._num_rows * factor:
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
