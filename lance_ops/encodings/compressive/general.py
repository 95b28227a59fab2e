"""General: the output of another encoding, compressed with LZ4 or zstd.

chunk     the first buffer compressed, the others unchanged
block     the block compressed
zipped    each value compressed on its own

lz4       raw size, u32 | LZ4 block
zstd      raw size, u64 | zstd frame; the reader also accepts a frame alone
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.codecs import Codec, codec_of_scheme
from lance_ops.encodings.compressive.variable import VariableEncoding
from lance_ops.encodings.contract import (
    DEFAULT_LIMITS,
    ChunkBuffers,
    ChunkLimits,
    EncodedChunks,
    Encoding,
    Picks,
    ReadNested,
)
from lance_ops.encodings.page_values import (
    FixedWidth,
    Values,
    VariableWidth,
    offsets_of_lengths,
)
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["GeneralEncoding"]


@dataclass(frozen=True)
class GeneralEncoding(Encoding):
    """`values`, compressed by `codec`."""

    MESSAGE: ClassVar[str] = "general"

    codec: Codec
    values: Encoding

    @classmethod
    def from_pb(cls, message: pb.General, nested: ReadNested) -> Self:
        level = message.compression.level if message.compression.HasField("level") else None
        return cls(codec_of_scheme(message.compression.scheme, level), nested(message.values))

    def to_pb(self) -> pb.CompressiveEncoding:
        compression = pb.BufferCompression(scheme=self.codec.scheme, level=self.codec.level)
        return pb.CompressiveEncoding(general=pb.General(compression=compression, values=self.values.to_pb()))

    @property
    def num_buffers(self) -> int:
        return self.values.num_buffers

    def decode_chunks(self, chunks: ChunkBuffers) -> Values:
        return self.values.decode_chunks(self._decompressed(chunks))

    def pick_chunks(self, chunks: ChunkBuffers, picks: Picks) -> Values:
        return self.values.pick_chunks(self._decompressed(chunks), picks)

    def _decompressed(self, chunks: ChunkBuffers) -> ChunkBuffers:
        chunks.expect_buffers(self.num_buffers)
        if self.num_buffers == 0:
            raise UnsupportedFeature("general compression of an encoding without buffers")
        raw, sizes = self.codec.decompress(chunks.data, chunks.starts[0], chunks.sizes[0])
        if self.num_buffers == 1:
            return ChunkBuffers(raw, (np.cumsum(sizes) - sizes,), (sizes,), chunks.num_values)
        # The other buffers lie in the fetched bytes, which may be a whole mapped file. One array must hold both.
        kept, starts = _only_these(chunks.data, chunks.starts[1:], chunks.sizes[1:])
        first = np.cumsum(sizes) - sizes + len(kept)
        return replace(
            chunks,
            data=np.concatenate([kept, raw]),
            starts=(first, *starts),
            sizes=(sizes, *chunks.sizes[1:]),
        )

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        inner = self.values.encode_chunks(values, limits)
        data, sizes = self.codec.compress(inner.data[0], inner.sizes[0])
        return replace(inner, data=(data, *inner.data[1:]), sizes=(sizes, *inner.sizes[1:]))

    def decode_block(self, data: Uint8Array, num_values: int) -> Values:
        if len(data) == 0:
            return self.values.decode_block(data, num_values)
        raw, _ = self.codec.decompress(data, np.zeros(1, np.int64), np.array([len(data)], np.int64))
        return self.values.decode_block(raw, num_values)

    def encode_block(self, values: Values) -> Uint8Array:
        raw = self.values.encode_block(values)
        return self.codec.compress(raw, np.array([len(raw)], np.int64))[0]

    def decode_zipped(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> Values:
        raw, raw_sizes = self.codec.decompress(data, starts, sizes)
        return self.values.decode_zipped(raw, np.cumsum(raw_sizes) - raw_sizes, raw_sizes)

    def encode_zipped(self, values: Values) -> FixedWidth | VariableWidth:
        if not isinstance(self.values, VariableEncoding):
            raise self._unsupported(f"of {self.values.MESSAGE} values in full-zip pages")
        raw = self.values.encode_zipped(values)
        data, sizes = self.codec.compress(raw.data[: raw.size_bytes], raw.lengths().astype(np.int64))
        return VariableWidth(offsets_of_lengths(sizes, self.values.bits_per_offset), data)


def _only_these(
    data: Uint8Array, starts: tuple[Int64Array, ...], sizes: tuple[Int64Array, ...]
) -> tuple[Uint8Array, tuple[Int64Array, ...]]:
    """Return the part of `data` that spans all of these buffers, and their starts in that part."""
    first = min((int(each.min(initial=len(data))) for each in starts), default=0)
    last = max((int((start + size).max(initial=first)) for start, size in zip(starts, sizes, strict=True)), default=0)
    return data[first:last], tuple(each - first for each in starts)
