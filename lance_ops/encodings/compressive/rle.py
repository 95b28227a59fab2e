"""Run-length encoding: the value of each run in one buffer, its length in another; a length is one byte.

    chunk    values[r] | lengths[r]                              two buffers
    block    bytes of the values, u64 | values[r] | lengths[r]

A run of more than 255 values is stored as several runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from lance_ops import kernels
from lance_ops.core.arrow import new_bytes
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.chunking import chunk_counts_of_costs, even_chunks
from lance_ops.encodings.contract import (
    DEFAULT_LIMITS,
    ChunkBuffers,
    ChunkLimits,
    EncodedChunks,
    Encoding,
    Picks,
    ReadNested,
    check,
)
from lance_ops.encodings.lanes import INTEGER_BITS
from lance_ops.encodings.page_values import (
    FixedWidth,
    Values,
    gather_ranges,
    scatter_ranges,
)
from lance_ops.kernels import read_only
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["RleEncoding"]

_MAX_RUN = 255


@dataclass(frozen=True)
class RleEncoding(Encoding):
    """Runs of values of `bits_per_value` bits: 8, 16, 32 or 64."""

    MESSAGE: ClassVar[str] = "rle"

    bits_per_value: int

    @classmethod
    def from_pb(cls, message: pb.Rle, nested: ReadNested) -> Self:
        parts = (message.values, message.run_lengths)
        if any(part.WhichOneof("compression") != "flat" or part.flat.HasField("data") for part in parts):
            raise UnsupportedFeature("the run-length encoding with compressed values or lengths")
        if message.run_lengths.flat.bits_per_value != 8:
            raise UnsupportedFeature(f"run lengths of {message.run_lengths.flat.bits_per_value} bits")
        bits = message.values.flat.bits_per_value
        if bits not in INTEGER_BITS:
            raise UnsupportedFeature(f"runs of {bits}-bit values")
        return cls(bits)

    def to_pb(self) -> pb.CompressiveEncoding:
        values = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=self.bits_per_value))
        lengths = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=8))
        return pb.CompressiveEncoding(rle=pb.Rle(values=values, run_lengths=lengths))

    @property
    def num_buffers(self) -> int:
        return 2

    @property
    def _value_bytes(self) -> int:
        return self.bits_per_value // 8

    def decode_chunks(self, chunks: ChunkBuffers) -> FixedWidth:
        self._check_runs(chunks)
        most = _MAX_RUN * int(chunks.sizes[1].sum())
        check(chunks.total_values <= most, "a chunk's runs are shorter than its values")
        size = chunks.total_values * self._value_bytes
        out = new_bytes(size + 16)
        counts = read_only(chunks.num_values)
        written = kernels.expand_runs(read_only(chunks.data), *_places(chunks), counts, self._value_bytes, out)
        check(written == chunks.num_chunks, "a chunk's runs are shorter than its values")
        return FixedWidth(out[:size], self.bits_per_value, chunks.total_values)

    def pick_chunks(self, chunks: ChunkBuffers, picks: Picks) -> FixedWidth:
        self._check_runs(chunks)
        out = np.empty(picks.count, np.uint64)
        wanted = read_only(picks.chunk_of), read_only(picks.within)
        found = kernels.pick_runs(read_only(chunks.data), *_places(chunks), *wanted, self._value_bytes, out)
        check(found == picks.count, "a chunk's runs are shorter than its values")
        data = out.astype(f"<u{self._value_bytes}", copy=False).view(np.uint8)
        return FixedWidth(data, self.bits_per_value, picks.count)

    def _check_runs(self, chunks: ChunkBuffers) -> None:
        chunks.expect_buffers(2)
        enough = chunks.sizes[0] >= chunks.sizes[1] * self._value_bytes
        check(enough.all(), "a chunk has more run lengths than values")

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        fixed = self._expect(values)
        begins = _run_begins(fixed)
        return self._cut(fixed, begins, self._chunk_counts(begins, limits))

    def _chunk_counts(self, begins: BoolArray, limits: ChunkLimits) -> Int64Array:
        """Return the number of values in each chunk."""
        run_bytes = self._value_bytes + 1
        # a chunk may begin inside a run, and needs one more run for every 255 of its values
        slack = (limits.max_values // _MAX_RUN + 2) * run_bytes
        even = even_chunks(len(begins), limits.max_values)
        if len(even) == 0:
            return even
        runs = np.add.reduceat(begins, np.cumsum(even) - even, dtype=np.int64)
        if runs.max() * run_bytes + slack <= limits.max_bytes:
            return even
        costs = np.zeros(len(begins) + 1, np.int64)
        np.cumsum(begins, out=costs[1:])
        return chunk_counts_of_costs(costs * run_bytes, slack, limits)

    def decode_blocks(self, blocks: ChunkBuffers) -> FixedWidth:
        return self.decode_chunks(_as_chunks(blocks))

    def pick_blocks(self, blocks: ChunkBuffers, picks: Picks) -> FixedWidth:
        return self.pick_chunks(_as_chunks(blocks), picks)

    def encode_blocks(self, values: Values, num_values: Int64Array) -> EncodedChunks:
        fixed = self._expect(values)
        runs = self._cut(fixed, _run_begins(fixed), num_values)
        sizes = runs.sizes[0] + runs.sizes[1] + 8
        places = np.cumsum(sizes) - sizes
        out = np.empty(int(sizes.sum()), np.uint8)
        out[places[:, None] + np.arange(8)] = runs.sizes[0].astype("<i8").view(np.uint8).reshape(-1, 8)
        scatter_ranges(runs.data[0], runs.starts(0), runs.sizes[0], out, places + 8)
        scatter_ranges(runs.data[1], runs.starts(1), runs.sizes[1], out, places + 8 + runs.sizes[0])
        return EncodedChunks(num_values, (out,), (sizes,))

    def decode_block(self, data: Uint8Array, num_values: int) -> FixedWidth:
        one = np.ones(1, np.int64)
        return self.decode_blocks(ChunkBuffers(data, (one * 0,), (one * len(data),), one * num_values))

    def encode_block(self, values: Values) -> Uint8Array:
        return self.encode_blocks(values, np.array([values.num_values])).data[0]

    def _cut(self, values: FixedWidth, begins: BoolArray, counts: Int64Array) -> EncodedChunks:
        """Encode consecutive values in groups of `counts[i]`; no run continues from one group to the next."""
        integers = values.as_integers()
        chunk_starts = np.cumsum(counts) - counts
        begins = begins.copy()
        begins[chunk_starts[counts > 0]] = True
        run_starts = np.flatnonzero(begins)
        run_lengths = np.diff(run_starts, append=len(integers))
        pieces = -(-run_lengths // _MAX_RUN)
        lengths = np.full(int(pieces.sum()), _MAX_RUN, np.uint8)
        lengths[np.cumsum(pieces) - 1] = run_lengths - (pieces - 1) * _MAX_RUN
        run_values = np.repeat(integers[run_starts], pieces)
        piece_ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(pieces)])
        first = piece_ends[np.searchsorted(run_starts, chunk_starts)]
        num_runs = np.diff(first, append=piece_ends[-1]).astype(np.int64)
        return EncodedChunks(counts, (run_values.view(np.uint8), lengths), (num_runs * self._value_bytes, num_runs))

    def _expect(self, values: Values) -> FixedWidth:
        if not isinstance(values, FixedWidth) or values.bits_per_value != self.bits_per_value:
            raise TypeError(f"runs of {self.bits_per_value}-bit values for {type(values).__name__}")
        return values


def _places(chunks: ChunkBuffers) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return where each chunk's values and lengths start, and its number of runs."""
    return read_only(chunks.starts[0]), read_only(chunks.starts[1]), read_only(chunks.sizes[1])


def _as_chunks(blocks: ChunkBuffers) -> ChunkBuffers:
    """Return blocks of runs as chunks with two buffers, one of values and one of lengths."""
    blocks.expect_buffers(1)
    starts, sizes = blocks.starts[0], blocks.sizes[0]
    check(blocks.num_chunks == 0 or sizes.min() >= 8, "a block of runs has no header")
    header = gather_ranges(blocks.data, starts, np.full(len(starts), 8, np.int64))
    value_bytes = np.ascontiguousarray(header).view("<i8")
    fits = (value_bytes >= 0) & (value_bytes <= sizes - 8)
    check(fits.all(), "the values of a block of runs end beyond it")
    return replace(
        blocks,
        starts=(starts + 8, starts + 8 + value_bytes),
        sizes=(value_bytes, sizes - 8 - value_bytes),
    )


def _run_begins(values: FixedWidth) -> BoolArray:
    """Return for each value whether it differs from the one before."""
    integers = values.as_integers()
    begins = np.ones(len(integers), np.bool_)
    np.not_equal(integers[1:], integers[:-1], out=begins[1:])
    return begins
