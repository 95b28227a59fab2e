"""Out-of-line bitpacking: unsigned integers packed at one width that the description states.

    block    1024 packed values (FastLanes) | 1024 packed values | ... | tail

A tail of fewer than 1024 values is stored unpacked if that is no longer than a packed block. Otherwise zeros fill it up
and it is packed. A reader tells the two apart by the length of the block.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.contract import ChunkBuffers, EncodedChunks, Encoding, Picks, ReadNested, check
from lance_ops.encodings.lanes import BLOCK, INTEGER_BITS, pack, pick, unpack, unpack_to
from lance_ops.encodings.page_values import (
    FixedWidth,
    Values,
    scatter_ranges,
)
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

    def size_of_blocks(self, num_values: Int64Array) -> int:
        """Return the bytes of blocks of `num_values[i]` values each."""
        full, tail = np.divmod(num_values, BLOCK)
        tails = np.minimum(tail * (self.bits_per_value // 8), self._packed_bytes)
        return int((full * self._packed_bytes + tails).sum())

    def decode_blocks(self, blocks: ChunkBuffers) -> FixedWidth:
        blocks.expect_buffers(1)
        starts, counts = blocks.starts[0], blocks.num_values
        full, raw = self._parts(blocks)
        num_packed = full + ((counts % BLOCK > 0) & ~raw)
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

    def pick_blocks(self, blocks: ChunkBuffers, picks: Picks) -> FixedWidth:
        blocks.expect_buffers(1)
        starts, value_bytes = blocks.starts[0][picks.chunk_of], self.bits_per_value // 8
        full, raw = self._parts(blocks)
        part = picks.within // BLOCK
        is_raw = raw[picks.chunk_of] & (part == full[picks.chunk_of])
        part_starts = starts + part * self._packed_bytes
        if not is_raw.any():
            widths = np.full(picks.count, self.bit_width, np.int64)
            return pick(blocks.data, part_starts, widths, picks.within % BLOCK, self.bits_per_value)
        out = np.empty(picks.count, f"<u{value_bytes}")
        raw_starts = part_starts[is_raw] + (picks.within[is_raw] % BLOCK) * value_bytes
        out[is_raw] = blocks.data[raw_starts[:, None] + np.arange(value_bytes)].view(out.dtype).reshape(-1)
        packed = ~is_raw
        widths = np.full(int(np.count_nonzero(packed)), self.bit_width, np.int64)
        places = picks.within[packed] % BLOCK
        out[packed] = pick(blocks.data, part_starts[packed], widths, places, self.bits_per_value).as_integers()
        return FixedWidth(out.view(np.uint8), self.bits_per_value, picks.count)

    def _parts(self, blocks: ChunkBuffers) -> tuple[Int64Array, BoolArray]:
        """Return how many full packed parts each block has, and whether its tail is stored unpacked."""
        sizes, (full, tail) = blocks.sizes[0], np.divmod(blocks.num_values, BLOCK)
        raw: BoolArray = (tail > 0) & (sizes == full * self._packed_bytes + tail * (self.bits_per_value // 8))
        num_packed = full + ((tail > 0) & ~raw)
        check((num_packed * self._packed_bytes <= sizes).all(), "a packed block is shorter than its values")
        return full, raw

    def _decode_mixed(
        self,
        blocks: ChunkBuffers,
        starts: Int64Array,
        counts: Int64Array,
        is_raw: BoolArray,
    ) -> FixedWidth:
        value_bytes = self.bits_per_value // 8
        sizes = counts * value_bytes
        places = np.cumsum(sizes) - sizes
        widths = np.full(int(np.count_nonzero(~is_raw)), self.bit_width, np.int64)
        # a packed tail is unpacked as a whole block, over the values that follow it, so raw tails are copied last
        out = unpack_to(blocks.data, starts[~is_raw], widths, places[~is_raw], self.bits_per_value, int(sizes.sum()))
        scatter_ranges(blocks.data, starts[is_raw], sizes[is_raw], out, places[is_raw])
        return FixedWidth(out[: int(sizes.sum())], self.bits_per_value, int(counts.sum()))

    def decode_block(self, data: Uint8Array, num_values: int) -> FixedWidth:
        one = np.ones(1, np.int64)
        return self.decode_blocks(ChunkBuffers(data, (one * 0,), (one * len(data),), one * num_values))

    def encode_blocks(self, values: Values, num_values: Int64Array) -> EncodedChunks:
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

    def encode_block(self, values: Values) -> Uint8Array:
        return self.encode_blocks(values, np.array([values.num_values])).data[0]

    def _keeps_raw(self, tail: Int64Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        kept: np.ndarray[tuple[int], np.dtype[np.bool_]] = (tail > 0) & (
            tail * (self.bits_per_value // 8) <= self._packed_bytes
        )
        return kept

    def _expect(self, values: Values) -> FixedWidth:
        if not isinstance(values, FixedWidth) or values.bits_per_value != self.bits_per_value:
            raise TypeError(f"bitpacking of {self.bits_per_value}-bit values for {type(values).__name__}")
        return values
