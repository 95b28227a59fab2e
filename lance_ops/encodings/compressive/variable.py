"""Variable: offsets followed by the byte strings, not compressed.

chunk    offsets[n + 1] | bytes      offsets count from the start of the chunk's buffer, so the first is where the
                                     bytes begin; the buffer is a multiple of the offset width
block    bits per offset | start of bytes | offsets[n + 1] | bytes
                                     the two words are as wide as an offset; offsets count from the bytes, from 0
zipped   the bytes of the value
"""

from __future__ import annotations

from typing import ClassVar, Self, cast

import numpy as np

from lance_ops import kernels
from lance_ops.core.arrow import new_array, new_bytes
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.chunking import chunk_counts_of_lengths
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
    Values,
    VariableWidth,
    gather_ranges,
    narrow_offsets,
    offsets_of_lengths,
)
from lance_ops.kernels import read_only
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["VariableEncoding"]

_MAX_I32 = np.iinfo(np.int32).max


@dataclass(frozen=True)
class VariableEncoding(Encoding):
    """Byte strings with offsets of 32 or 64 bits."""

    MESSAGE: ClassVar[str] = "variable"

    bits_per_offset: int

    @classmethod
    def from_pb(cls, message: pb.Variable, nested: ReadNested) -> Self:
        if message.HasField("values") or message.offsets.WhichOneof("compression") != "flat":
            raise UnsupportedFeature("the variable encoding with compressed offsets or bytes")
        bits = message.offsets.flat.bits_per_value
        check(bits in (32, 64), f"offsets of {bits} bits")
        return cls(bits)

    def to_pb(self) -> pb.CompressiveEncoding:
        offsets = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=self.bits_per_offset))
        return pb.CompressiveEncoding(variable=pb.Variable(offsets=offsets))

    @property
    def _word(self) -> np.dtype[np.uint32] | np.dtype[np.uint64]:
        return np.dtype("<u4") if self.bits_per_offset == 32 else np.dtype("<u8")

    def decode_chunks(self, chunks: ChunkBuffers) -> VariableWidth:
        starts, sizes = self.check_chunks(chunks)
        width, counts = self.bits_per_offset // 8, chunks.num_values
        # each chunk stores at least one offset more than it has values
        out = new_bytes(int((sizes - counts * width).sum()))
        offsets = new_array(chunks.total_values + 1, np.int64)
        joined = kernels.join_strings(read_only(chunks.data), starts, sizes, read_only(counts), width, out, offsets)
        check(joined == chunks.num_chunks, "a chunk's offsets are not in order or point beyond it")
        return VariableWidth(narrow_offsets(offsets, self.bits_per_offset), out[: int(offsets[-1])])

    def pick_chunks(self, chunks: ChunkBuffers, picks: Picks) -> VariableWidth:
        starts, sizes = self.locate(chunks, picks)
        return VariableWidth(offsets_of_lengths(sizes, self.bits_per_offset), gather_ranges(chunks.data, starts, sizes))

    def locate(self, chunks: ChunkBuffers, picks: Picks) -> tuple[Int64Array, Int64Array]:
        """Return the starts of the picked values in the chunks' data, and their sizes."""
        starts, sizes = self.check_chunks(chunks)
        value_starts, value_sizes = np.empty(picks.count, np.int64), np.empty(picks.count, np.int64)
        counts, wanted = read_only(chunks.num_values), (read_only(picks.chunk_of), read_only(picks.within))
        width = self.bits_per_offset // 8
        found = kernels.pick_strings(
            read_only(chunks.data), starts, sizes, counts, *wanted, width, value_starts, value_sizes
        )
        check(found == picks.count, "a chunk's offsets are not in order or point beyond it")
        return value_starts, value_sizes

    def check_chunks(self, chunks: ChunkBuffers) -> tuple[Int64Array, Int64Array]:
        """Return the starts of the chunks; raise `CorruptValues` for a chunk that cannot hold its offsets."""
        chunks.expect_buffers(1)
        fits = chunks.sizes[0] >= (chunks.num_values + 1) * (self.bits_per_offset // 8)
        check(fits.all(), "a chunk is shorter than its offsets")
        return read_only(chunks.starts[0]), read_only(chunks.sizes[0])

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        strings = self._expect(values)
        width = self._word.itemsize
        offsets = strings.offsets.astype(np.int64, copy=False)
        counts = chunk_counts_of_lengths(offsets, width, limits)
        most_bytes = strings.size_bytes + (strings.num_values + 2 * len(counts)) * width
        out, sizes = new_bytes(most_bytes), np.empty(len(counts), np.int64)
        kernels.split_strings(read_only(strings.data), read_only(offsets), read_only(counts), width, out, sizes)
        return EncodedChunks(counts, (out[: int(sizes.sum())],), (sizes,))

    def decode_block(self, data: Uint8Array, num_values: int) -> VariableWidth:
        width = self._word.itemsize
        if num_values == 0 and len(data) == 0:
            return VariableWidth(np.zeros(1, np.int32), np.empty(0, np.uint8))
        begin = 2 * width
        check(len(data) >= begin + (num_values + 1) * width, "a block is shorter than its offsets")
        # every release since 2.1 writes the stated width as a word of the described width
        stated, start = (int(word) for word in data[:begin].view(self._word))
        check(stated == self.bits_per_offset, f"a block of {stated}-bit offsets described as {self.bits_per_offset}")
        check(begin + (num_values + 1) * width <= start <= len(data), "a block's bytes begin inside its offsets")
        words = self._signed(data[begin : begin + (num_values + 1) * width])
        lengths = np.diff(words)
        in_order = words[0] == 0 and (num_values == 0 or lengths.min() >= 0) and words[-1] <= len(data) - start
        check(in_order, "a block's offsets are not in order or point beyond it")
        return VariableWidth(narrow_offsets(words, self.bits_per_offset), data[start : start + int(words[-1])])

    def encode_block(self, values: Values) -> Uint8Array:
        strings = self._expect(values)
        width = self._word.itemsize
        head = np.array([self.bits_per_offset, 2 * width + len(strings.offsets) * width], self._word)
        offsets = strings.offsets.astype(self._word)
        return np.concatenate([head.view(np.uint8), offsets.view(np.uint8), strings.data[: strings.size_bytes]])

    def decode_zipped(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> VariableWidth:
        return VariableWidth(offsets_of_lengths(sizes, self.bits_per_offset), gather_ranges(data, starts, sizes))

    def encode_zipped(self, values: Values) -> VariableWidth:
        return self._expect(values)

    def _signed(self, data: Uint8Array) -> Int64Array:
        """Read offsets as signed numbers; an offset of 2^63 or more becomes negative and fails the check of order."""
        return cast(Int64Array, np.ascontiguousarray(data).view(self._word).astype(np.int64))

    def _expect(self, values: Values) -> VariableWidth:
        if not isinstance(values, VariableWidth):
            raise TypeError(f"variable encoding of {type(values).__name__}")
        if self.bits_per_offset == 32 and values.size_bytes > _MAX_I32:
            raise ValueError("more than 2 GiB of strings with 32-bit offsets")
        return values
