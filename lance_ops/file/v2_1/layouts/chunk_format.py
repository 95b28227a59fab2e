"""How the chunks of a mini-block page are encoded, and what is in them.

    chunk    u16 num_levels | [u16 rep size] | [u16 def size] | size of each value buffer (u16, or u32 in pages with
             large chunks) | repetition levels | definition levels | value buffers
             the header and every buffer are padded to 8 bytes

`num_levels` is 0 where neither kind of levels is stored. All wanted chunks are looked at together, so that the cost of
Python is paid once for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.encodings import ChunkBuffers, Encoding, Picks, Values, check, concat_values, select
from lance_ops.file.v2_1.layouts.contract import levels_of
from lance_ops.file.v2_1.levels import Entries, LevelScheme
from lance_ops.kernels import read_only

__all__ = ["ChunkFormat", "ChunkParts", "Turn"]


_PICK_BELOW = 4
"""Values are picked one by one where at most one in so many is wanted; else all of them are decoded."""


@dataclass(frozen=True, eq=False)
class ChunkParts:
    """Where the parts of some chunks are, and how many levels each chunk has."""

    num_levels: Int64Array
    rep: ChunkBuffers | None
    definition: ChunkBuffers | None
    values: ChunkBuffers


class Turn(NamedTuple):
    """Chunks of some that are read together, `start` to `stop`, and how the values in these are encoded."""

    encoding: Encoding
    start: int
    stop: int


@dataclass(frozen=True)
class ChunkFormat:
    """What is the same for all chunks of a page. Pages that agree in it have chunks of one kind."""

    scheme: LevelScheme
    rep: Encoding | None
    definition: Encoding | None
    values: Encoding
    num_buffers: int
    large: bool

    def locate(self, data: Uint8Array, starts: Int64Array, stops: Int64Array, counts: Int64Array) -> ChunkParts:
        """Read the headers of the chunks at these places, which lie in `data` and hold `counts[i]` values each."""
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
            check((num_levels == counts).all(), "definition levels are not one a value")
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
        return self._checked(Entries(int(parts.num_levels.sum()), rep, definition))

    def pick_entries(self, parts: ChunkParts, picks: Picks) -> Entries:
        """Return the entries of some values, where there are no lists and so every entry owns one."""
        definition = None
        if self.definition is not None and parts.definition is not None:
            blocks = parts.definition
            if _is_sparse(picks, blocks.total_values):
                definition = levels_of(self.definition.pick_blocks(blocks, picks))
            else:
                definition = self.decode_entries(parts).definition
                assert definition is not None
                definition = definition[picks.positions(blocks.num_values)]
        return self._checked(Entries(picks.count, None, definition))

    @property
    def alike(self) -> Hashable:
        """What formats must agree in for chunks of all of them to be read together, if their values in turn."""
        return self.scheme, self.rep, self.definition, self.values.kin, self.num_buffers, self.large

    def decode_values(self, parts: ChunkParts, turns: Sequence[Turn] = ()) -> Values:
        """Return all values of the chunks; `turns` tell which are encoded in which way, where there are several."""
        if not turns:
            return _decoded(self.values, parts.values)
        return concat_values([_decoded(turn.encoding, parts.values.slice(turn.start, turn.stop)) for turn in turns])

    def pick_values(self, parts: ChunkParts, picks: Picks, turns: Sequence[Turn] = ()) -> Values:
        """Return some values of the chunks."""
        if not turns:
            return _picked(self.values, parts.values, picks)
        return concat_values(
            [
                _picked(turn.encoding, parts.values.slice(turn.start, turn.stop), picks.slice(turn.start, turn.stop))
                for turn in turns
            ]
        )

    def _checked(self, entries: Entries) -> Entries:
        check(entries.rep is None or len(entries.rep) == entries.count, "repetition levels are not one an entry")
        whole = entries.definition is None or len(entries.definition) == entries.count
        check(whole, "definition levels are not one an entry")
        return entries


def _decoded(encoding: Encoding, chunks: ChunkBuffers) -> Values:
    values = encoding.decode_chunks(chunks)
    check(values.num_values == chunks.total_values, "an encoding that lost count of its values")
    return values


def _picked(encoding: Encoding, chunks: ChunkBuffers, picks: Picks) -> Values:
    if not _is_sparse(picks, chunks.total_values):
        return select(_decoded(encoding, chunks), picks.positions(chunks.num_values))
    values = encoding.pick_chunks(chunks, picks)
    check(values.num_values == picks.count, "an encoding that lost count of its values")
    return values


def _is_sparse(picks: Picks, num_values: int) -> bool:
    return picks.count * _PICK_BELOW <= num_values
