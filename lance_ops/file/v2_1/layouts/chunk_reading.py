"""Read wanted elements out of the chunks of mini-block pages with one chunk index."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lance_ops.core.ndarrays import Int64Array
from lance_ops.encodings import Encoding, Picks, Values, check
from lance_ops.file.page_reading import Ranges, RowSelection, RowSet, RowSlice, SourceBytes, Steps
from lance_ops.file.v2_1.layouts.chunk_format import ChunkFormat, ChunkParts, EncodingRun
from lance_ops.file.v2_1.layouts.chunk_index import ChunkIndex
from lance_ops.file.v2_1.layouts.chunk_rows import find_rows, find_slice
from lance_ops.file.v2_1.layouts.contract import check_entries
from lance_ops.file.v2_1.levels import Entries

__all__ = ["read_chunks"]


def read_chunks(
    chunk_format: ChunkFormat,
    elements: RowSelection,
    index: ChunkIndex,
    fetched: SourceBytes | None,
    ends: Sequence[tuple[Encoding, int]] = (),
    *,
    whole: bool,
) -> Steps[tuple[Entries, Values]]:
    """Read the chunks that hold the wanted elements, and decode those elements.

    `whole`: all elements of the index are wanted. `fetched` has the bytes of all chunks if they were read with the
    index. If the pages have several encodings, `ends` has each encoding and the chunk before which it ends.
    """
    chunks: slice | Int64Array
    picks: Picks | None = None
    if isinstance(elements, RowSlice):
        chunks = index.span(elements)
    elif index.rows is None:
        chunks, picks = index.locate(elements.indices)
    else:
        chunks = index.chunks_of(elements)
    starts, stops = index.starts[chunks], index.stops[chunks]
    if fetched is None or not whole:
        fetched = yield Ranges(starts, stops)
    counts = index.counts_of(chunks)
    positions = fetched.locate(starts)
    parts = chunk_format.locate(fetched.data, positions, positions + (stops - starts), counts)
    runs = _encoding_runs(ends, chunks) if ends else ()
    if picks is not None:
        entries, values = chunk_format.pick_entries(parts, picks), chunk_format.pick_values(parts, picks, runs)
    elif isinstance(elements, RowSet):
        found = find_rows(elements, index, chunks, chunk_format, parts)
        entries, values = found.entries, chunk_format.pick_values(parts, found.picks, runs)
    else:
        entries, values = _read_slice(chunk_format, elements, whole, index, chunks, parts, runs)
    check_entries(chunk_format.scheme, entries)
    return entries, values


def _read_slice(
    chunk_format: ChunkFormat,
    elements: RowSlice,
    whole: bool,
    index: ChunkIndex,
    chunks: slice | Int64Array,
    parts: ChunkParts,
    runs: Sequence[EncodingRun],
) -> tuple[Entries, Values]:
    values, entries = chunk_format.decode_values(parts, runs), chunk_format.decode_entries(parts)
    assert isinstance(chunks, slice)
    if index.rows is not None:
        _check_count(chunk_format, entries, values)
        if whole:
            return entries, values
        found, owned = find_slice(elements, index.rows, chunks, entries, parts, chunk_format.scheme)
        return entries.take(found), values.slice(owned.start, owned.stop)
    if whole:
        return entries, values
    skipped = int(index.first_values[chunks.start])
    wanted = slice(elements.start - skipped, elements.stop - skipped)
    return entries.take(wanted), values.slice(wanted.start, wanted.stop)


def _check_count(chunk_format: ChunkFormat, entries: Entries, values: Values) -> None:
    visible = entries.count
    if entries.definition is not None and chunk_format.scheme.has_invisible:
        visible = int(np.count_nonzero(entries.definition <= chunk_format.scheme.max_visible_def))
    check(visible == values.num_values, f"{visible} visible entries for {values.num_values} values")


def _encoding_runs(ends: Sequence[tuple[Encoding, int]], chunks: slice | Int64Array) -> list[EncodingRun]:
    """Return the runs of these chunks, ascending, that have one encoding; `ends` are those of each encoding."""
    last = [end for _, end in ends]
    if isinstance(chunks, slice):
        stops = [min(max(end - chunks.start, 0), chunks.stop - chunks.start) for end in last]
    else:
        stops = chunks.searchsorted(last).tolist()
    bounds = pairwise([0, *stops])
    return [
        EncodingRun(encoding, *bound) for (encoding, _), bound in zip(ends, bounds, strict=True) if bound[0] < bound[1]
    ]
