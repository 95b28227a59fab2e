"""Run-length encoding: the value of each run in one buffer, its length in another; a length is one byte.

    chunk    values[r] | lengths[r]                              two buffers
    block    bytes of the values, u64 | values[r] | lengths[r]

Longer runs are cut at 255.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.encodings.chunking import chunk_counts_of_costs
from lance_ops.encodings.contract import (
    DEFAULT_LIMITS,
    ChunkBuffers,
    ChunkLimits,
    EncodedChunks,
    Encoding,
    ReadNested,
    check,
)
from lance_ops.encodings.gather import gather_ranges
from lance_ops.encodings.lanes import INTEGER_BITS
from lance_ops.encodings.values import Bytes, FixedWidth, Integers, Values
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
        chunks.expect_buffers(2)
        num_runs = chunks.sizes[1]
        check((chunks.sizes[0] >= num_runs * self._value_bytes).all(), "a chunk has more run lengths than values")
        values = gather_ranges(chunks.data, chunks.starts[0], num_runs * self._value_bytes)
        lengths = gather_ranges(chunks.data, chunks.starts[1], num_runs).astype(np.int64)
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        first_runs = np.cumsum(num_runs) - num_runs
        totals = ends[first_runs + num_runs] - ends[first_runs]
        check((totals >= chunks.num_values).all(), "a chunk's runs are shorter than its values")
        if (totals > chunks.num_values).any():
            # a writer may leave runs in a chunk that the chunk's last value has already cut
            reached = ends[:-1] - np.repeat(ends[first_runs], num_runs)
            lengths = np.clip(np.repeat(chunks.num_values, num_runs) - reached, 0, lengths)
        out = np.repeat(np.ascontiguousarray(values).view(f"u{self._value_bytes}"), lengths)
        return FixedWidth(out.view(np.uint8), self.bits_per_value, len(out))

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        fixed = self._expect(values)
        integers = fixed.as_integers()
        changes = np.ones(len(integers), np.int64)
        changes[1:] = integers[1:] != integers[:-1]
        # a run costs its value and its length, and once more for every 255 of its values
        costs = np.cumsum(changes) * (self._value_bytes + 1)
        costs = np.concatenate([np.zeros(1, np.int64), costs])
        slack = (limits.max_values // _MAX_RUN + 2) * (self._value_bytes + 1)
        counts = chunk_counts_of_costs(costs, slack, limits)
        return self._cut(fixed, counts)

    def decode_blocks(self, blocks: ChunkBuffers) -> FixedWidth:
        blocks.expect_buffers(1)
        starts, sizes = blocks.starts[0], blocks.sizes[0]
        check(blocks.num_chunks == 0 or sizes.min() >= 8, "a block of runs has no header")
        header = gather_ranges(blocks.data, starts, np.full(len(starts), 8, np.int64))
        value_bytes = np.ascontiguousarray(header).view("<i8")
        fits = (value_bytes >= 0) & (value_bytes <= sizes - 8)
        check(fits.all(), "the values of a block of runs end beyond it")
        runs = replace(
            blocks,
            starts=(starts + 8, starts + 8 + value_bytes),
            sizes=(value_bytes, sizes - 8 - value_bytes),
        )
        return self.decode_chunks(runs)

    def encode_blocks(self, values: Values, num_values: Integers) -> EncodedChunks:
        runs = self._cut(self._expect(values), num_values)
        sizes = runs.sizes[0] + runs.sizes[1] + 8
        out = np.empty(int(sizes.sum()), np.uint8)
        place = np.cumsum(sizes) - sizes
        heads = runs.sizes[0].astype("<i8").view(np.uint8).reshape(-1, 8)
        for i, at in enumerate(place.tolist()):
            out[at : at + 8] = heads[i]
            for buffer in (0, 1):
                start, size = int(runs.starts(buffer)[i]), int(runs.sizes[buffer][i])
                at_buffer = at + 8 + (int(runs.sizes[0][i]) if buffer else 0)
                out[at_buffer : at_buffer + size] = runs.data[buffer][start : start + size]
        return EncodedChunks(num_values, (out,), (sizes,))

    def decode_block(self, data: Bytes, num_values: int) -> FixedWidth:
        one = np.ones(1, np.int64)
        return self.decode_blocks(ChunkBuffers(data, (one * 0,), (one * len(data),), one * num_values))

    def encode_block(self, values: Values) -> Bytes:
        return self.encode_blocks(values, np.array([values.num_values])).data[0]

    def _cut(self, values: FixedWidth, counts: Integers) -> EncodedChunks:
        """Encode consecutive runs of values, none empty but for one that is all there is."""
        integers = values.as_integers()
        chunk_starts = np.cumsum(counts) - counts
        begins = np.zeros(len(integers), np.bool_)
        begins[1:] = integers[1:] != integers[:-1]
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
