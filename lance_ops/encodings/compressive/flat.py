"""Flat: fixed-width values side by side, not compressed.

Chunks, blocks and zipped values hold the little-endian bytes of the values. Values below 8 bits fill each byte from its
lowest bit.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.chunking import chunk_counts_of_width
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
from lance_ops.encodings.page_values import (
    FixedWidth,
    Values,
    bits_at,
    concat_bits,
    gather_equal,
    gather_ranges,
    num_bytes_of_bits,
)
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["FlatEncoding"]

_MAX_BITS = 1 << 32


@dataclass(frozen=True)
class FlatEncoding(Encoding):
    """Values of `bits_per_value` bits: 1, or a multiple of 8."""

    MESSAGE: ClassVar[str] = "flat"

    bits_per_value: int

    @classmethod
    def from_pb(cls, message: pb.Flat, nested: ReadNested) -> Self:
        bits = message.bits_per_value
        if message.HasField("data"):
            raise UnsupportedFeature("a compressed buffer inside the flat encoding")
        check(0 < bits <= _MAX_BITS, f"{bits} bits a value")
        if bits != 1 and bits % 8:
            raise UnsupportedFeature(f"the flat encoding with {bits} bits a value")
        return cls(bits)

    def to_pb(self) -> pb.CompressiveEncoding:
        return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=self.bits_per_value))

    def decode_chunks(self, chunks: ChunkBuffers) -> FixedWidth:
        num_bits = self._check_sizes(chunks)
        needed = -(-num_bits // 8)
        if chunks.num_chunks and (num_bits[:-1] % 8).any():
            parts = [(chunks.buffer(0, i), int(n)) for i, n in enumerate(num_bits)]
            return FixedWidth(concat_bits(parts), self.bits_per_value, chunks.total_values)
        data = gather_ranges(chunks.data, chunks.starts[0], needed)
        return FixedWidth(data, self.bits_per_value, chunks.total_values)

    def pick_chunks(self, chunks: ChunkBuffers, picks: Picks) -> FixedWidth:
        self._check_sizes(chunks)
        starts, bits = chunks.starts[0][picks.chunk_of], self.bits_per_value
        if bits == 1:
            return FixedWidth(bits_at(chunks.data, 8 * starts + picks.within), bits, picks.count)
        width = bits // 8
        return FixedWidth(gather_equal(chunks.data, starts + picks.within * width, width), bits, picks.count)

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        fixed = self._expect(values)
        return self._cut(fixed, chunk_counts_of_width(fixed.num_values, self.bits_per_value, limits))

    def decode_blocks(self, blocks: ChunkBuffers) -> FixedWidth:
        return self.decode_chunks(blocks)

    def pick_blocks(self, blocks: ChunkBuffers, picks: Picks) -> FixedWidth:
        return self.pick_chunks(blocks, picks)

    def encode_blocks(self, values: Values, num_values: Int64Array) -> EncodedChunks:
        if self.bits_per_value % 8:
            return super().encode_blocks(values, num_values)
        return self._cut(self._expect(values), num_values)

    def decode_block(self, data: Uint8Array, num_values: int) -> FixedWidth:
        needed = num_bytes_of_bits(num_values * self.bits_per_value)
        check(len(data) >= needed, f"{len(data)} bytes for {num_values} values of {self.bits_per_value} bits")
        return FixedWidth(data[:needed], self.bits_per_value, num_values)

    def encode_block(self, values: Values) -> Uint8Array:
        fixed = self._expect(values)
        return fixed.data[: fixed.size_bytes]

    def decode_zipped(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> FixedWidth:
        self._expect_whole_bytes()
        check((sizes == self.bits_per_value // 8).all(), "a zipped value is not as long as its encoding says")
        return FixedWidth(gather_ranges(data, starts, sizes), self.bits_per_value, len(starts))

    def encode_zipped(self, values: Values) -> FixedWidth:
        self._expect_whole_bytes()
        return self._expect(values)

    def _cut(self, values: FixedWidth, num_values: Int64Array) -> EncodedChunks:
        sizes = -(-num_values * self.bits_per_value // 8)
        return EncodedChunks(num_values, (values.data[: values.size_bytes],), (sizes.astype(np.int64),))

    def _check_sizes(self, chunks: ChunkBuffers) -> Int64Array:
        """Return the number of bits in each chunk; raise `CorruptValues` if a chunk is too short for its values."""
        chunks.expect_buffers(1)
        # Python integers, because numpy's would overflow
        enough = chunks.total_values * self.bits_per_value <= 8 * int(chunks.sizes[0].sum())
        check(enough, "chunks are shorter than their values")
        num_bits = chunks.num_values * self.bits_per_value
        check((chunks.sizes[0] >= -(-num_bits // 8)).all(), "a chunk is shorter than its values")
        return num_bits

    def _expect(self, values: Values) -> FixedWidth:
        if not isinstance(values, FixedWidth) or values.bits_per_value != self.bits_per_value:
            raise TypeError(f"flat {self.bits_per_value}-bit encoding of {type(values).__name__}")
        return values

    def _expect_whole_bytes(self) -> None:
        if self.bits_per_value % 8:
            raise self._unsupported(f"of {self.bits_per_value}-bit values in full-zip pages")
