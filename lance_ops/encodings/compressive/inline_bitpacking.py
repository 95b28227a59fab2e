"""Inline bitpacking: up to 1024 unsigned integers, packed at the width of the largest.

    chunk and block    the width, in one word of T bits | 1024 packed values of that width (FastLanes)

Zeros fill the last chunk up to 1024 values.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from lance_ops import kernels
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.chunking import even_chunks
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
from lance_ops.encodings.lanes import BLOCK, INTEGER_BITS, pack, pick, unpack
from lance_ops.encodings.page_values import (
    FixedWidth,
    Values,
)
from lance_ops.kernels import read_only
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["InlineBitpackingEncoding"]


@dataclass(frozen=True)
class InlineBitpackingEncoding(Encoding):
    """Integers of `bits_per_value` bits before packing: 8, 16, 32 or 64."""

    MESSAGE: ClassVar[str] = "inline_bitpacking"

    bits_per_value: int

    @classmethod
    def from_pb(cls, message: pb.InlineBitpacking, nested: ReadNested) -> Self:
        if message.HasField("values"):
            raise UnsupportedFeature("a compressed buffer inside the inline bitpacking encoding")
        bits = message.uncompressed_bits_per_value
        check(bits in INTEGER_BITS, f"bitpacked values of {bits} bits")
        return cls(bits)

    def to_pb(self) -> pb.CompressiveEncoding:
        described = pb.InlineBitpacking(uncompressed_bits_per_value=self.bits_per_value)
        return pb.CompressiveEncoding(inline_bitpacking=described)

    def decode_chunks(self, chunks: ChunkBuffers) -> FixedWidth:
        starts, widths = self._read_widths(chunks)
        return unpack(chunks.data, starts, widths, chunks.num_values, self.bits_per_value)

    def pick_chunks(self, chunks: ChunkBuffers, picks: Picks) -> FixedWidth:
        starts, widths = self._read_widths(chunks)
        chunk_of = picks.chunk_of
        return pick(chunks.data, starts[chunk_of], widths[chunk_of], picks.within, self.bits_per_value)

    def _read_widths(self, chunks: ChunkBuffers) -> tuple[Int64Array, Int64Array]:
        """Return the start of each chunk's packed values, and their width in bits."""
        chunks.expect_buffers(1)
        starts, word_bytes, widths = chunks.starts[0], self.bits_per_value // 8, np.empty(chunks.num_chunks, np.int64)
        places = read_only(starts), read_only(chunks.sizes[0])
        read = kernels.read_widths(read_only(chunks.data), *places, word_bytes, widths)
        check(read == chunks.num_chunks, "a packed chunk is shorter than its values")
        return starts + word_bytes, widths

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        return self.encode_blocks(values, even_chunks(values.num_values, min(BLOCK, limits.max_values)))

    def decode_blocks(self, blocks: ChunkBuffers) -> FixedWidth:
        return self.decode_chunks(blocks)

    def pick_blocks(self, blocks: ChunkBuffers, picks: Picks) -> FixedWidth:
        return self.pick_chunks(blocks, picks)

    def encode_blocks(self, values: Values, num_values: Int64Array) -> EncodedChunks:
        integers = self._expect(values)
        if len(num_values) and num_values.max() > BLOCK:
            raise ValueError(f"inline bitpacking of more than {BLOCK} values in one block")
        data, sizes = pack(integers, num_values)
        return EncodedChunks(num_values, (data,), (sizes,))

    def decode_block(self, data: Uint8Array, num_values: int) -> FixedWidth:
        count = 1 if num_values or len(data) else 0
        one = np.ones(count, np.int64)
        return self.decode_chunks(ChunkBuffers(data, (one * 0,), (one * len(data),), one * num_values))

    def encode_block(self, values: Values) -> Uint8Array:
        counts = np.full(1 if values.num_values else 0, values.num_values, np.int64)
        return self.encode_blocks(values, counts).data[0]

    def _expect(self, values: Values) -> FixedWidth:
        if not isinstance(values, FixedWidth) or values.bits_per_value != self.bits_per_value:
            raise TypeError(f"bitpacking of {self.bits_per_value}-bit values for {type(values).__name__}")
        return values
