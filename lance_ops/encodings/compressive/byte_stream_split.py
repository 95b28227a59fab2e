"""Byte stream split: the first bytes of all values of a chunk, then their second bytes, and so on.

    chunk    byte 0 of n values | byte 1 of n values | ... | byte T / 8 - 1 of n values

The values take as many bytes as before, but a general codec around this encoding compresses them better.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from lance_ops.core.arrow import new_bytes
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.chunking import chunk_counts_of_width
from lance_ops.encodings.compressive.flat import FlatEncoding
from lance_ops.encodings.contract import (
    DEFAULT_LIMITS,
    ChunkBuffers,
    ChunkLimits,
    EncodedChunks,
    Encoding,
    ReadNested,
)
from lance_ops.encodings.page_values import (
    FixedWidth,
    Values,
)
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["ByteStreamSplitEncoding"]


@dataclass(frozen=True)
class ByteStreamSplitEncoding(Encoding):
    """Values of `bits_per_value` bits, a multiple of 8."""

    MESSAGE: ClassVar[str] = "byte_stream_split"

    bits_per_value: int

    @classmethod
    def from_pb(cls, message: pb.ByteStreamSplit, nested: ReadNested) -> Self:
        values = nested(message.values)
        if not isinstance(values, FlatEncoding) or values.bits_per_value % 8:
            raise UnsupportedFeature("byte stream split of other than flat values of whole bytes")
        return cls(values.bits_per_value)

    def to_pb(self) -> pb.CompressiveEncoding:
        split = pb.ByteStreamSplit(values=FlatEncoding(self.bits_per_value).to_pb())
        return pb.CompressiveEncoding(byte_stream_split=split)

    def decode_chunks(self, chunks: ChunkBuffers) -> FixedWidth:
        split = FlatEncoding(self.bits_per_value).decode_chunks(chunks)
        data = _transpose(split.data, chunks.num_values, self.bits_per_value // 8, merge=True)
        return FixedWidth(data, self.bits_per_value, split.num_values)

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        if not isinstance(values, FixedWidth) or values.bits_per_value != self.bits_per_value:
            raise TypeError(f"byte stream split of {self.bits_per_value}-bit values for {type(values).__name__}")
        counts = chunk_counts_of_width(values.num_values, self.bits_per_value, limits)
        width = self.bits_per_value // 8
        data = _transpose(values.data[: values.size_bytes], counts, width, merge=False)
        return EncodedChunks(counts, (data,), (counts * width,))


def _transpose(data: Uint8Array, counts: Int64Array, width: int, *, merge: bool) -> Uint8Array:
    """Turn each chunk's rows of values into rows of bytes, or back when merging."""
    out = new_bytes(len(data))
    chunk, done = 0, 0
    while chunk < len(counts):
        # a run of equally long chunks is one transposition
        count = int(counts[chunk])
        differing = np.flatnonzero(counts[chunk:] != count)
        run = int(differing[0]) if len(differing) else len(counts) - chunk
        end = done + run * count * width
        shape = (run, width, count) if merge else (run, count, width)
        turned = data[done:end].reshape(shape).transpose(0, 2, 1)
        out[done:end].reshape(turned.shape)[:] = turned
        chunk, done = chunk + run, end
    return out
