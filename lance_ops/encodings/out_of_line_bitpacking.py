"""Out-of-line bitpacking: unsigned integers cut to one width that the description states.

    block    1024 packed values (FastLanes) | 1024 packed values | ... | tail

A tail of fewer than 1024 values is stored as it is when that is no longer than a packed block, else filled up with
zeros and packed. Which one it is follows from the length of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.encodings.contract import ChunkBuffers, EncodedChunks, Encoding, ReadNested, check
from lance_ops.encodings.gather import gather_ranges, scatter_ranges
from lance_ops.encodings.lanes import BLOCK, INTEGER_BITS, pack, unpack
from lance_ops.encodings.values import Bytes, FixedWidth, Integers, Values
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["OutOfLineBitpackingEncoding"]


@dataclass(frozen=True)
class OutOfLineBitpackingEncoding(Encoding):
    """Integers of `bits_per_value` bits, packed into `bit_width` bits each."""

    MESSAGE: ClassVar[str] = "out_of_line_bitpacking"

    bits_per_value: int
    bit_width: int

    @classmethod
    def from_pb(cls, message: pb.OutOfLineBitpacking, nested: ReadNested) -> Self:
        if message.values.WhichOneof("compression") != "flat" or message.values.flat.HasField("data"):
            raise UnsupportedFeature("compressed values inside the out-of-line bitpacking encoding")
        bits, width = message.uncompressed_bits_per_value, message.values.flat.bits_per_value
        check(bits in INTEGER_BITS, f"bitpacked values of {bits} bits")
        check(0 < width <= bits, f"{bits}-bit values packed into {width} bits")
        return cls(bits, width)

    def to_pb(self) -> pb.CompressiveEncoding:
        packed = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=self.bit_width))
        described = pb.OutOfLineBitpacking(uncompressed_bits_per_value=self.bits_per_value, values=packed)
        return pb.CompressiveEncoding(out_of_line_bitpacking=described)

    @property
    def _packed_bytes(self) -> int:
        return BLOCK // 8 * self.bit_width

    def size_of_blocks(self, num_values: Integers) -> int:
        """Return the bytes of blocks of `num_values[i]` values each."""
        full, tail = np.divmod(num_values, BLOCK)
        tails = np.minimum(tail * (self.bits_per_value // 8), self._packed_bytes)
        return int((full * self._packed_bytes + tails).sum())

    def decode_blocks(self, blocks: ChunkBuffers) -> FixedWidth:
        blocks.expect_buffers(1)
        starts, sizes, counts = blocks.starts[0], blocks.sizes[0], blocks.num_values
        value_bytes = self.bits_per_value // 8
        full, tail = np.divmod(counts, BLOCK)
        raw = (tail > 0) & (sizes == full * self._packed_bytes + tail * value_bytes)
        num_packed = full + ((tail > 0) & ~raw)
        check((num_packed * self._packed_bytes <= sizes).all(), "a packed block is shorter than its values")
        parts = num_packed + raw
        part_of = np.repeat(np.arange(len(counts)), parts)
        index = np.arange(len(part_of)) - np.repeat(np.cumsum(parts) - parts, parts)
        part_starts = starts[part_of] + index * self._packed_bytes
        part_counts = np.minimum(counts[part_of] - index * BLOCK, BLOCK)
        is_raw = raw[part_of] & (index == num_packed[part_of])
        if not is_raw.any():
            widths = np.full(len(part_of), self.bit_width, np.int64)
            return unpack(blocks.data, part_starts, widths, part_counts, self.bits_per_value)
        return self._decode_mixed(blocks, part_starts, part_counts, is_raw)

    def _decode_mixed(
        self,
        blocks: ChunkBuffers,
        starts: Integers,
        counts: Integers,
        is_raw: np.ndarray[tuple[int], np.dtype[np.bool_]],
    ) -> FixedWidth:
        value_bytes = self.bits_per_value // 8
        packed_counts = counts[~is_raw]
        widths = np.full(len(packed_counts), self.bit_width, np.int64)
        packed = unpack(blocks.data, starts[~is_raw], widths, packed_counts, self.bits_per_value)
        raw = gather_ranges(blocks.data, starts[is_raw], counts[is_raw] * value_bytes)
        out = np.empty(int(counts.sum()), f"u{value_bytes}")
        from_raw = np.repeat(is_raw, counts)
        out[from_raw] = raw.view(out.dtype)
        out[~from_raw] = packed.data.view(out.dtype)
        return FixedWidth(out.view(np.uint8), self.bits_per_value, len(out))

    def decode_block(self, data: Bytes, num_values: int) -> FixedWidth:
        one = np.ones(1, np.int64)
        return self.decode_blocks(ChunkBuffers(data, (one * 0,), (one * len(data),), one * num_values))

    def encode_blocks(self, values: Values, num_values: Integers) -> EncodedChunks:
        integers = self._expect(values)
        value_bytes = self.bits_per_value // 8
        tail = num_values % BLOCK
        parts = -(-num_values // BLOCK)
        counts = np.full(int(parts.sum()), BLOCK, np.int64)
        last = np.cumsum(parts) - 1
        counts[last[tail > 0]] = tail[tail > 0]
        packed, sizes = pack(integers, counts, self.bit_width)
        raw = np.zeros(len(counts), np.bool_)
        raw[last[self._keeps_raw(tail)]] = True
        if not raw.any():
            return EncodedChunks(num_values, (packed,), (parts * self._packed_bytes,))
        part_sizes = np.where(raw, counts * value_bytes, sizes)
        places = np.cumsum(part_sizes) - part_sizes
        out = np.empty(int(part_sizes.sum()), np.uint8)
        scatter_ranges(packed, (np.cumsum(sizes) - sizes)[~raw], sizes[~raw], out, places[~raw])
        starts = (np.cumsum(counts) - counts) * value_bytes
        scatter_ranges(integers.data, starts[raw], part_sizes[raw], out, places[raw])
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(part_sizes)])
        return EncodedChunks(num_values, (out,), (np.diff(ends[np.concatenate([np.zeros(1, np.int64), last + 1])]),))

    def encode_block(self, values: Values) -> Bytes:
        return self.encode_blocks(values, np.array([values.num_values])).data[0]

    def _keeps_raw(self, tail: Integers) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        kept: np.ndarray[tuple[int], np.dtype[np.bool_]] = (tail > 0) & (
            tail * (self.bits_per_value // 8) <= self._packed_bytes
        )
        return kept

    def _expect(self, values: Values) -> FixedWidth:
        if not isinstance(values, FixedWidth) or values.bits_per_value != self.bits_per_value:
            raise TypeError(f"bitpacking of {self.bits_per_value}-bit values for {type(values).__name__}")
        return values
