"""Find the entries and values of wanted rows in mini-block chunks, if rows are lists and may span chunks."""

from __future__ import annotations

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.records import dataclass
from lance_ops.encodings import Picks, check
from lance_ops.file.page_reading import RowSet, RowSlice
from lance_ops.file.v2_1.layouts.chunk_format import ChunkFormat, ChunkParts
from lance_ops.file.v2_1.layouts.chunk_index import ChunkIndex, RowIndex
from lance_ops.file.v2_1.levels import Entries, LevelScheme
from lance_ops.kernels import read_only

__all__ = ["FoundRows", "find_rows", "find_slice"]


_OTHER_ROWS = "the levels of chunks start other rows than the repetition index states"
_NO_ROOM = -2
_ENTRIES_PER_ROW = 64
"""How many entries a row is first expected to have: room for all entries of the chunks would mostly stay unused."""

_NO_LEVELS = read_only(np.empty(0, np.uint16))


@dataclass(frozen=True, eq=False)
class FoundRows:
    """The entries of some rows, and the values of the chunks that they own."""

    entries: Entries
    picks: Picks


def find_rows(
    rows: RowSet, index: ChunkIndex, chunks: slice | Int64Array, chunk_format: ChunkFormat, parts: ChunkParts
) -> FoundRows:
    """Find scattered rows in the chunks that hold them.

    Raises `CorruptValues` if the levels start other rows than the index states.
    """
    assert index.rows is not None and not isinstance(chunks, slice)
    entries = chunk_format.decode_entries(parts)
    rep, definition = entries.rep, entries.definition
    assert rep is not None
    scheme = chunk_format.scheme
    begun, ended = index.rows.begun[chunks], index.rows.ended[chunks]
    firsts, lasts = rows.starts, rows.starts + (rows.run - 1)
    begins_in = np.searchsorted(begun, firsts, side="right") - 1
    ends_in = np.searchsorted(ended, lasts, side="right") - 1
    levels = _NO_LEVELS if definition is None or not scheme.has_invisible else read_only(definition)
    num_begun = read_only(index.rows.begun[chunks + 1] - begun)
    ordinals, following = read_only(firsts - begun[begins_in]), read_only(lasts - firsts)
    room = min(entries.count, _ENTRIES_PER_ROW * rows.count)
    while True:
        found, chunk_of, within = (np.empty(room, np.int64) for _ in range(3))
        num_entries, num_values = kernels.find_rows(
            read_only(rep),
            levels,
            read_only(parts.num_levels),
            num_begun,
            scheme.max_rep,
            scheme.max_visible_def,
            read_only(begins_in),
            read_only(ends_in),
            ordinals,
            following,
            found,
            chunk_of,
            within,
        )
        if num_entries != _NO_ROOM:
            break
        room = entries.count
    check(num_entries >= 0, _OTHER_ROWS)
    picks = Picks(chunk_of[:num_values], within[:num_values])
    owned = picks.within < parts.values.num_values[picks.chunk_of]
    check(owned.all(), "a chunk with more entries than values")
    return FoundRows(entries.take(found[:num_entries]), picks)


def find_slice(
    rows: RowSlice, index: RowIndex, chunks: slice, entries: Entries, parts: ChunkParts, scheme: LevelScheme
) -> tuple[slice, slice]:
    """Find consecutive rows among the entries of the chunks that hold them; return their entries and values.

    Raises `CorruptValues` if the levels start other rows than the index states.
    """
    assert entries.rep is not None
    row_starts = np.flatnonzero(entries.rep == scheme.max_rep)
    begun = index.begun[chunks.start : chunks.stop + 1]
    chunk_ends = np.cumsum(parts.num_levels)
    started = np.searchsorted(row_starts, chunk_ends)
    check((started == begun[1:] - begun[0]).all(), _OTHER_ROWS)
    start = int(row_starts[rows.first - int(begun[0])])
    after = rows.last - int(begun[0]) + 1
    stop = int(row_starts[after]) if after < len(row_starts) else entries.count
    levels = entries.definition if scheme.has_invisible else None
    if levels is None:
        return slice(start, stop), slice(start, stop)  # every entry owns a value
    most = scheme.max_visible_def
    first = int(np.count_nonzero(levels[:start] <= most))
    return slice(start, stop), slice(first, first + int(np.count_nonzero(levels[start:stop] <= most)))
