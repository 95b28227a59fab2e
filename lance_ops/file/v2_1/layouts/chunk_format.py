"""Decode the chunks of a mini-block page: find the parts of each chunk, then its levels and values.

    chunk    u16 num_levels | [u16 rep size] | [u16 def size] | size of each value buffer (u16, or u32 in pages with
             large chunks) | repetition levels | definition levels | value buffers
             the header and every buffer are padded to 8 bytes

`num_levels` is 0 if the page stores no levels. All wanted chunks are decoded by one call, so that Python's cost is paid
once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings import ChunkBuffers, Encoding, Picks, Values, check, concat_values, select
from lance_ops.file.v2_1.layouts.contract import levels_of
from lance_ops.file.v2_1.levels import Entries, LevelScheme
from lance_ops.kernels import read_only

__all__ = ["ChunkFormat", "ChunkParts", "EncodingRun"]


_PICK_BELOW = 4
"""Values are decoded one by one if at most one in this many is wanted; otherwise all values are decoded."""


@dataclass(frozen=True, eq=False)
class ChunkParts:
    """Where the parts of some chunks are, and how many levels each chunk has."""

    num_levels: Int64Array
    rep: ChunkBuffers | None
    definition: ChunkBuffers | None
    values: ChunkBuffers


class EncodingRun(NamedTuple):
    """Consecutive chunks whose values have one encoding: `start` to `stop` of the chunks that are read."""

    encoding: Encoding
    start: int
    stop: int


@dataclass(frozen=True)
class ChunkFormat:
    """How all chunks of a page are encoded. Chunks of pages with equal formats are decoded by one call."""

    scheme: LevelScheme
    rep: Encoding | None
    definition: Encoding | None
    values: Encoding
    num_buffers: int
    large: bool

    def locate(self, data: Uint8Array, starts: Int64Array, stops: Int64Array, counts: Int64Array) -> ChunkParts:
        """Read the headers of chunks: chunk `i` is `data[starts[i]:stops[i]]` and holds `counts[i]` values."""
        num_chunks, width = len(starts), 4 if self.large else 2
        has_rep, has_def = self.rep is not None, self.definition is not None
        num_parts = has_rep + has_def + self.num_buffers
        num_levels = np.empty(num_chunks, np.int64)
        part_starts, part_sizes = np.empty((2, num_parts, num_chunks), np.int64)
        read = kernels.read_headers(
            read_only(data),
            read_only(starts),
            read_only(stops),
            has_rep + has_def,
            self.num_buffers,
            width,
            num_levels,
            part_starts.reshape(-1),
            part_sizes.reshape(-1),
        )
        check(read == num_chunks, "a chunk's buffers are longer than the chunk")
        if not (has_rep or has_def):
            num_levels = counts
        elif not has_rep:
            check((num_levels == counts).all(), "not one definition level a value")
        first = has_rep + has_def
        levels = [
            ChunkBuffers(data, (part_starts[i],), (part_sizes[i],), num_levels, located=True) for i in range(first)
        ]
        values = ChunkBuffers(data, tuple(part_starts[first:]), tuple(part_sizes[first:]), counts, located=True)
        return ChunkParts(num_levels, levels[0] if has_rep else None, levels[-1] if has_def else None, values)

    def decode_entries(self, parts: ChunkParts) -> Entries:
        """Return all entries of the chunks."""
        rep = definition = None
        if self.rep is not None and parts.rep is not None:
            rep = levels_of(self.rep.decode_blocks(parts.rep))
        if self.definition is not None and parts.definition is not None:
            definition = levels_of(self.definition.decode_blocks(parts.definition))
        return self._check(Entries(int(parts.num_levels.sum()), rep, definition))

    def pick_entries(self, parts: ChunkParts, picks: Picks) -> Entries:
        """Return the entries of some values in a page without lists, where every entry owns a value."""
        definition = None
        if self.definition is not None and parts.definition is not None:
            blocks = parts.definition
            if _is_sparse(picks, blocks.total_values):
                definition = levels_of(self.definition.pick_blocks(blocks, picks))
            else:
                definition = self.decode_entries(parts).definition
                assert definition is not None
                definition = definition[picks.positions(blocks.num_values)]
        return self._check(Entries(picks.count, None, definition))

    @property
    def read_key(self) -> Hashable:
        """Chunks of formats with equal keys are read by one call; their values are decoded encoding by encoding."""
        return self.scheme, self.rep, self.definition, self.values.chunk_key, self.num_buffers, self.large

    def decode_values(self, parts: ChunkParts, runs: Sequence[EncodingRun] = ()) -> Values:
        """Return all values of the chunks; `runs` give their encodings if there are several."""
        if not runs:
            return _decode(self.values, parts.values)
        return concat_values([_decode(run.encoding, parts.values.slice(run.start, run.stop)) for run in runs])

    def pick_values(self, parts: ChunkParts, picks: Picks, runs: Sequence[EncodingRun] = ()) -> Values:
        """Return some values of the chunks; `runs` give their encodings if there are several."""
        if not runs:
            return _pick(self.values, parts.values, picks)
        return concat_values(
            [
                _pick(run.encoding, parts.values.slice(run.start, run.stop), picks.slice(run.start, run.stop))
                for run in runs
            ]
        )

    def _check(self, entries: Entries) -> Entries:
        check(entries.rep is None or len(entries.rep) == entries.count, "not one repetition level an entry")
        whole = entries.definition is None or len(entries.definition) == entries.count
        check(whole, "not one definition level an entry")
        return entries


def _decode(encoding: Encoding, chunks: ChunkBuffers) -> Values:
    values = encoding.decode_chunks(chunks)
    check(values.num_values == chunks.total_values, "an encoding that decoded another number of values")
    return values


def _pick(encoding: Encoding, chunks: ChunkBuffers, picks: Picks) -> Values:
    if not _is_sparse(picks, chunks.total_values):
        return select(_decode(encoding, chunks), picks.positions(chunks.num_values))
    values = encoding.pick_chunks(chunks, picks)
    check(values.num_values == picks.count, "an encoding that decoded another number of values")
    return values


def _is_sparse(picks: Picks, num_values: int) -> bool:
    return picks.count * _PICK_BELOW <= num_values
