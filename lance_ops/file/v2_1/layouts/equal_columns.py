"""Read columns whose mini-block pages are alike: one call decodes all of them, as if they were one page.

Each call has a fixed cost, which is most of the cost of reading thousands of short columns. The columns have one type,
one page each with the same number of rows and the same description, and neither lists nor dictionaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import Int64Array
from lance_ops.encodings import check, gather_ranges
from lance_ops.file.page_reading import Budget, Ranges, RowSelection, RowSet, RowSlice, SourceBytes, Steps
from lance_ops.file.v2_1.layouts.chunk_index import ChunkIndex
from lance_ops.file.v2_1.layouts.contract import PageLayout, check_entries
from lance_ops.file.v2_1.layouts.mini_block import MiniBlockPage

__all__ = ["EqualColumns", "SameColumns"]

_MAX_ROW_BYTES = 32
"""Columns that take more bytes a row in the file are read one by one."""

_MOST_DECODED = 2
"""If more values are decoded for each wanted one, as for few rows of a chunk, the wanted ones are copied."""


class EqualColumns:
    """Columns of equal pages; their chunk indexes are kept once they are loaded."""

    def __init__(self, page: MiniBlockPage, buffers: Int64Array) -> None:
        self._context = page.context
        self._format = page.described.format
        self._words, self._chunks = buffers[:, 0], buffers[:, 1]
        self._index: ChunkIndex | None = None
        self.num_columns = len(buffers)

    @classmethod
    def of(cls, page: PageLayout, buffers: Int64Array) -> Self | None:
        """Return the columns whose pages are described as `page` is; None if they cannot be read together.

        `buffers[i]` has the position and size of each buffer of column `i`.
        """
        if (
            not isinstance(page, MiniBlockPage)
            or page.described.dictionary is not None
            or page.described.format.rep is not None
        ):
            return None
        largest = int(buffers[:, 1, 1].max())
        return cls(page, buffers) if largest <= page.context.length * _MAX_ROW_BYTES else None

    def read(self, rows: RowSelection, budget: Budget) -> Steps[Sequence[pa.Array]]:
        """Return the wanted rows of each column, at least one row; the bytes that they hold are counted."""
        length = self._context.length
        whole = isinstance(rows, RowSlice) and rows.count == length
        fetched: SourceBytes | None = None
        if self._index is None:
            wanted = np.concatenate([self._words, self._chunks]) if whole else self._words
            fetched = yield Ranges(wanted[:, 0], wanted.sum(axis=1))
            self._index = self._load(fetched)
        index, firsts = self._index, np.arange(self.num_columns) * length
        if isinstance(rows, RowSet):
            return (yield from self._read_set(index, (firsts[:, None] + rows.indices).reshape(-1), budget))
        begin = index.first_values.searchsorted(firsts + rows.first, side="right") - 1
        num_chunks = index.first_values.searchsorted(firsts + rows.last, side="right") - begin
        ends = num_chunks.cumsum()
        chunks = np.arange(int(ends[-1])) + (begin - (ends - num_chunks)).repeat(num_chunks)
        starts, stops = index.starts[chunks], index.stops[chunks]
        if fetched is None or not whole:
            fetched = yield Ranges(starts, stops)
        counts, positions = index.counts_of(chunks), fetched.locate(starts)
        parts = self._format.locate(fetched.data, positions, positions + (stops - starts), counts)
        values, entries = self._format.decode_values(parts), self._format.decode_entries(parts)
        check_entries(self._format.scheme, entries)
        array = self._context.finish(values.num_values, self._format.scheme, entries, self._context.to_array(values))
        before = counts.cumsum() - counts  # the decoded values before each chunk
        places = before[ends - num_chunks] + firsts + rows.first - index.first_values[begin]
        found = [array.values.slice(place, rows.count) for place in places.tolist()]
        if values.num_values > _MOST_DECODED * rows.count * self.num_columns:
            array_of_found = pa.concat_arrays(found)  # the slices would hold all that was decoded
            found = [array_of_found.slice(place, rows.count) for place in range(0, len(array_of_found), rows.count)]
        budget.spend(sum(part.nbytes for part in found))
        return found

    def _read_set(self, index: ChunkIndex, values: Int64Array, budget: Budget) -> Steps[Sequence[pa.Array]]:
        """Read the values at these positions, equally many of each column."""
        chunks, picks = index.locate(values)
        starts, stops = index.starts[chunks], index.stops[chunks]
        fetched = yield Ranges(starts, stops)
        positions = fetched.locate(starts)
        parts = self._format.locate(fetched.data, positions, positions + (stops - starts), index.counts_of(chunks))
        entries, found = self._format.pick_entries(parts, picks), self._format.pick_values(parts, picks)
        check_entries(self._format.scheme, entries)
        array = self._context.finish(len(values), self._format.scheme, entries, self._context.to_array(found))
        budget.spend(array.values.nbytes)
        count = len(values) // self.num_columns
        return [array.values.slice(place, count) for place in range(0, len(values), count)]

    def _load(self, fetched: SourceBytes) -> ChunkIndex:
        width = 4 if self._format.large else 2
        positions, sizes = self._words[:, 0], self._words[:, 1]
        check(not (sizes % width).any(), f"chunk words that are not {width} bytes wide")
        words = gather_ranges(fetched.data, fetched.locate(positions), sizes).view(f"<u{width}")
        num_values = np.full(self.num_columns, self._context.length, np.int64)
        return ChunkIndex.decode_joined(words, sizes // width, num_values, *self._chunks.T)


class SameColumns:
    """Columns whose pages have no buffers and one description, as columns of nulls have: their rows are the same."""

    def __init__(self, page: PageLayout, num_columns: int) -> None:
        self._page = page
        self._num_columns = num_columns

    def read(self, rows: RowSelection, budget: Budget) -> Steps[Sequence[pa.Array]]:
        """Return the wanted rows of each column, at least one row, which share one array."""
        found = yield from self._page.read(rows)
        budget.spend(found.values.nbytes)
        return [found.values] * self._num_columns
