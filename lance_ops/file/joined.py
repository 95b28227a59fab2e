"""Reading small files as one: all their rows, one file after the other.

What a page costs before its first value is decoded is the same for a small one, so pages of one kind are decoded by one
call whichever files they lie in. The files are laid end to end, in thought: a buffer is as far into all of them as it
is into its own, and the files before it are long. For that their bytes must be in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import CorruptFile
from lance_ops.core.schema import Field, Schema
from lance_ops.file.assemble import assemble, concat_rows
from lance_ops.file.budget import Budget
from lance_ops.file.columns import Leaf, leaves_of_field
from lance_ops.file.container import Column, Extent
from lance_ops.file.copied_columns import columns_of
from lance_ops.file.layouts.contract import LeafRows, PageLayout
from lance_ops.file.pages import open_page, read_pages, reporting
from lance_ops.file.reader import FileReader, table_of
from lance_ops.file.rows import Rows, RowSlice
from lance_ops.file.source import Ranges, SourceBytes, drive, merged

__all__ = ["JoinedFile", "read_joined"]


@dataclass(frozen=True, eq=False)
class JoinedFile:
    """A file that can be read with others: its bytes, and the columns of each field."""

    reader: FileReader
    source: SourceBytes
    columns: tuple[tuple[Column, ...], ...]

    @classmethod
    def of(cls, reader: FileReader, schema: Schema) -> JoinedFile | None:
        """Return a file that is in place, of 2.1 or later, and has rows of the fields as they are given; else None."""
        if not reader.num_rows or any(pt.is_dictionary(part.arrow_type) for part in schema.walk()):
            return None
        columns = tuple(tuple(columns_of(reader, field)) for field in schema.fields)
        source = reader.in_place() if all(columns) else None
        return None if source is None else cls(reader, source, columns)


def read_joined(files: Sequence[JoinedFile], schema: Schema) -> pa.Table:
    """Return the rows of all these files, in order, a single chunk a column.

    Raises `ReadTooLarge` where that is more than one read may make. A `CorruptFile` may name another of the files.
    """
    return _Joined(files).read(schema)


class _Joined:
    """Files end to end."""

    def __init__(self, files: Sequence[JoinedFile]) -> None:
        self._files = files
        ends = list(accumulate(file.reader.size_bytes for file in files))
        self._begins = [0, *ends[:-1]]
        self._size_bytes = ends[-1]
        self._budget = Budget(self._size_bytes)

    def read(self, schema: Schema) -> pa.Table:
        arrays = [[self._field(field, at)] for at, field in enumerate(schema.fields)]
        num_rows = sum(file.reader.num_rows for file in self._files)
        return table_of(schema, arrays, num_rows, self._files[0].reader.path)

    def _field(self, field: Field, at: int) -> pa.Array:
        leaves = enumerate(leaves_of_field(field))
        parts = [self._leaf(leaf, [file.columns[at][number] for file in self._files]) for number, leaf in leaves]
        with reporting(self._files[0].reader.path, f"column {field.name!r}"):
            return assemble(field, [concat_rows(rows) for rows in parts])

    def _leaf(self, leaf: Leaf, columns: Sequence[Column]) -> list[LeafRows]:
        """Read one column of all files: pages that are kin and follow each other as one."""
        runs: list[tuple[str, list[PageLayout], list[Rows]]] = []
        place = f"column {leaf.field.name!r}"
        for file, begin, column in zip(self._files, self._begins, columns, strict=True):
            path = file.reader.path
            for page in column.pages:
                if not page.length:
                    continue
                buffers = tuple(Extent(extent.position + begin, extent.size) for extent in page.buffers)
                moved = replace(page, buffers=buffers)
                layout = open_page(moved, leaf, self._size_bytes, path, place)
                if not runs or layout.kin is None or layout.kin != runs[-1][1][-1].kin:
                    runs.append((path, [], []))
                runs[-1][1].append(layout)
                runs[-1][2].append(RowSlice(0, page.length // leaf.elements_per_row))
        return [
            drive(read_pages(layouts, rows, self._budget, path, place), self._fetch) for path, layouts, rows in runs
        ]

    def _fetch(self, ranges: Ranges) -> SourceBytes:
        """Return bytes by their position in all files: copied together, but for those of one range."""
        starts, stops = merged(ranges)
        numbers = np.searchsorted(np.array(self._begins), starts, side="right") - 1
        pieces = []
        for number, start, stop in zip(numbers.tolist(), starts.tolist(), stops.tolist(), strict=True):
            file, begin = self._files[number], self._begins[number]
            if stop - begin > file.reader.size_bytes:
                raise CorruptFile(file.reader.path, "pages", "buffers that go on in another file")
            pieces.append(file.source.view(start - begin, stop - begin))
        sizes = stops - starts
        data = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return SourceBytes(data, starts, np.cumsum(sizes) - sizes)
