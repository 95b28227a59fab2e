"""Which entries of decoded mini-block chunks belong to wanted rows, where rows are lists and may span chunks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_ops import kernels
from lance_ops.encodings.contract import check
from lance_ops.file.layouts.chunk_index import RowIndex
from lance_ops.file.levels import Entries, LevelScheme
from lance_ops.file.rows import Rows, RowSlice
from lance_ops.kernels.arrays import readable

__all__ = ["FoundRows", "find_rows"]

Integers = npt.NDArray[np.int64]
Selection = slice | Integers


@dataclass(frozen=True, eq=False)
class FoundRows:
    """The entries of some rows: `starts[i]` to `stops[i]`, each run beginning in chunk `chunk_of[i]` of those decoded.

    Rows next to each other are one run.
    """

    starts: Integers
    stops: Integers
    chunk_of: Integers
    chunk_starts: Integers
    levels: npt.NDArray[np.uint16] | None
    max_visible_def: int

    @property
    def entries(self) -> Selection:
        """Positions of the entries."""
        return _expand(self.starts, self.stops - self.starts)

    def values(self, num_values: Integers) -> Selection:
        """Return positions of the values that visible ones among the entries own; chunks hold `num_values[i]`."""
        if self.levels is None:
            return self.entries  # every entry owns one, in chunks and before them
        levels, most = readable(self.levels), self.max_visible_def
        before, count = np.empty(len(self.starts), np.int64), np.empty(len(self.starts), np.int64)
        chunk_starts = readable(self.chunk_starts[self.chunk_of])
        kernels.count_levels(levels, most, chunk_starts, readable(self.starts), before)
        kernels.count_levels(levels, most, readable(self.starts), readable(self.stops), count)
        first_values = np.cumsum(num_values) - num_values
        return _expand(first_values[self.chunk_of] + before, count)


def find_rows(
    rows: Rows, index: RowIndex, chunks: Integers, entries: Entries, num_levels: Integers, scheme: LevelScheme
) -> FoundRows:
    """Find rows among the entries of decoded chunks, which hold `num_levels[i]` entries each.

    Raises `CorruptValues` where the levels start other rows than the index says.
    """
    assert entries.rep is not None
    row_starts = np.flatnonzero(entries.rep == scheme.max_rep)
    chunk_ends = np.cumsum(num_levels)
    chunk_starts = chunk_ends - num_levels
    started_before = np.searchsorted(row_starts, chunk_starts)
    started = np.searchsorted(row_starts, chunk_ends) - started_before
    begun, ended = index.begun[chunks], index.ended[chunks]
    check((started == index.begun[chunks + 1] - begun).all(), "chunks start other rows than the index says")
    if isinstance(rows, RowSlice):
        firsts, lasts = np.array([rows.first]), np.array([rows.last])
    else:
        firsts = lasts = rows.indices
    begins_in = np.searchsorted(begun, firsts, side="right") - 1
    ends_in = np.searchsorted(ended, lasts, side="right") - 1
    starts = row_starts[started_before[begins_in] + firsts - begun[begins_in]]
    # A row ends with its last chunk, or before the next row: the chunk decoded after it may be another row's.
    last_begins_in = np.searchsorted(begun, lasts, side="right") - 1
    after = started_before[last_begins_in] + lasts - begun[last_begins_in] + 1
    stops = np.minimum(np.append(row_starts, chunk_ends[-1])[after], chunk_ends[ends_in])
    check((starts < stops).all(), "a row without entries")
    levels = entries.definition if scheme.has_invisible else None
    return FoundRows(starts, stops, begins_in, chunk_starts, levels, scheme.max_visible_def)


def _expand(starts: Integers, counts: Integers) -> Selection:
    """Return the positions in runs; a slice if there is one run."""
    if len(starts) == 1:
        return slice(int(starts[0]), int(starts[0] + counts[0]))
    ends = np.cumsum(counts)
    every: Integers = np.repeat(starts - (ends - counts), counts) + np.arange(int(ends[-1]), dtype=np.int64)
    return every
