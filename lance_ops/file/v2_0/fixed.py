"""Encodings of fixed-width values in 2.0 pages: flat, constant, or packed into fewer bits.

constant                 one value in the description, no buffer
flat                     the values side by side; values of one bit begin with the lowest bit of a byte. The bytes of
                         strings may be compressed as a whole: u64 raw size and a zstd frame, or u32 raw size and an
                         LZ4 block
bitpacked                the values' lowest bits end to end, lowest bit first; if signed, the top one is the sign
bitpacked_for_non_neg    blocks of 1024 values in FastLanes order, the last block padded
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.encodings import FixedWidth, check, codec_of_scheme, gather_ranges, lanes, select
from lance_ops.file.arrow_values import array_of, bits_per_value_of
from lance_ops.file.page_reading import Ranges, RowSelection, RowSet, RowSlice, Steps, read_flat_values
from lance_ops.file.v2_0.contract import ArrayContext, ArrayEncoding, PageBuffers, ReadArray
from lance_ops.pb import encodings_v2_0_pb2 as pb
from lance_ops.pb import encodings_v2_1_pb2 as pb21

__all__ = [
    "Bitpacked",
    "BitpackedForNonNeg",
    "Constant",
    "Flat",
    "encode_compressed",
    "encode_flat",
    "read_flat_values",
]


_SCHEMES = {
    "zstd": pb21.COMPRESSION_ALGORITHM_ZSTD,
    "lz4": pb21.COMPRESSION_ALGORITHM_LZ4,
}


class Flat(ArrayEncoding):
    """Values side by side."""

    MESSAGE: ClassVar[str] = "flat"

    def __init__(self, message: pb.Flat, context: ArrayContext) -> None:
        self._context = context
        self._bits = bits_per_value_of(context.arrow_type)
        self._extent = context.buffer(message.buffer)
        self._scheme: str | None = None
        check(message.bits_per_value == self._bits, f"{message.bits_per_value}-bit values of {context.arrow_type}")
        if message.HasField("compression") and message.compression.scheme not in ("", "none"):
            self._scheme = message.compression.scheme
            if self._scheme not in _SCHEMES:
                raise UnsupportedFeature(f"the {self._scheme!r} codec in 2.0 pages")
        else:
            needed = -(-context.length * self._bits // 8)
            check(self._extent.size >= needed, f"{self._extent.size} bytes for {context.length} values")

    @classmethod
    def from_pb(cls, message: pb.Flat, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context)

    def encodings(self) -> list[str]:
        return [self.MESSAGE] if self._scheme is None else [self._scheme, self.MESSAGE]

    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        if self._scheme is not None:
            data = yield from self._decompress()
            check(len(data) * 8 >= self._context.length * self._bits, "fewer bytes than values in a compressed buffer")
            values = FixedWidth(data, self._bits, self._context.length)
            return array_of(_pick(values, rows), self._context.arrow_type)
        values = yield from read_flat_values(self._extent, self._bits, rows)
        return array_of(values, self._context.arrow_type)

    def read_bytes(self, start: int, stop: int) -> Steps[Uint8Array]:
        """Read the bytes in `[start, stop)`, which are those of consecutive strings."""
        if self._scheme is not None:
            data = yield from self._decompress()
            check(stop <= len(data), "a string ends beyond the bytes")
            return data[start:stop]
        base = self._extent.position
        check(stop <= self._extent.size, "a string ends beyond the bytes")
        fetched = yield Ranges.of((base + start, base + stop))
        return fetched.view(base + start, base + stop)

    def gather_bytes(self, starts: Int64Array, sizes: Int64Array) -> Steps[Uint8Array]:
        """Read byte ranges and put them end to end."""
        end = int((starts + sizes).max())
        if self._scheme is not None:
            data = yield from self._decompress()
            check(end <= len(data), "a string ends beyond the bytes")
            return gather_ranges(data, starts, sizes)
        check(end <= self._extent.size, "a string ends beyond the bytes")
        is_filled = sizes > 0
        starts, sizes = starts[is_filled] + self._extent.position, sizes[is_filled]
        fetched = yield Ranges(starts, starts + sizes)
        return gather_ranges(fetched.data, fetched.locate(starts), sizes)

    def _decompress(self) -> Steps[Uint8Array]:
        assert self._scheme is not None
        extent = self._extent
        fetched = yield Ranges.of((extent.position, extent.end))
        codec = codec_of_scheme(_SCHEMES[self._scheme], None)
        start = fetched.locate(np.array([extent.position], np.int64))
        data, _ = codec.decompress(fetched.data, start, np.array([extent.size], np.int64))
        return data


class Constant(ArrayEncoding):
    """One value, stored in the description."""

    MESSAGE: ClassVar[str] = "constant"

    def __init__(self, message: pb.Constant, context: ArrayContext) -> None:
        self._arrow_type = context.arrow_type
        self._bits = bits_per_value_of(context.arrow_type)
        check(
            self._bits % 8 == 0 and len(message.value) == self._bits // 8, f"a constant of {len(message.value)} bytes"
        )
        self._value = np.frombuffer(message.value, np.uint8)

    @classmethod
    def from_pb(cls, message: pb.Constant, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context)

    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        yield from ()
        return array_of(FixedWidth(np.tile(self._value, rows.count), self._bits, rows.count), self._arrow_type)


class Bitpacked(ArrayEncoding):
    """The lowest bits of values, end to end."""

    MESSAGE: ClassVar[str] = "bitpacked"

    def __init__(self, message: pb.Bitpacked, context: ArrayContext) -> None:
        self._context = context
        self._bits = bits_per_value_of(context.arrow_type)
        self._packed_bits = message.compressed_bits_per_value
        self._signed = message.signed
        self._extent = context.buffer(message.buffer)
        check(message.uncompressed_bits_per_value == self._bits, f"not {self._bits}-bit values")
        check(self._bits in lanes.INTEGER_BITS, f"bitpacked values of {context.arrow_type}")
        check(0 < self._packed_bits <= self._bits, f"{self._bits}-bit values in {self._packed_bits} bits")
        check(self._extent.size * 8 >= context.length * self._packed_bits, "fewer bytes than bitpacked values")

    @classmethod
    def from_pb(cls, message: pb.Bitpacked, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context)

    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        # Eight values take as many bytes as one value has bits; the last group may have fewer bytes.
        base, size = self._extent.position, self._packed_bits
        if isinstance(rows, RowSlice):
            first, last = rows.start // 8, -(-rows.stop // 8)
            start, stop = base + first * size, min(base + last * size, self._extent.end)
            fetched = yield Ranges.of((start, stop))
            values = self._unpack(fetched.view(start, stop), last - first)
            values = values.slice(rows.start - first * 8, rows.stop - first * 8)
        else:
            eights = np.unique(rows.indices // 8)
            starts = base + eights * size
            stops = np.minimum(starts + size, self._extent.end)
            fetched = yield Ranges(starts, stops)
            found = self._unpack(gather_ranges(fetched.data, fetched.locate(starts), stops - starts), len(eights))
            values = _pick(found, RowSet(np.searchsorted(eights, rows.indices // 8) * 8 + rows.indices % 8))
        return array_of(values, self._context.arrow_type)

    def _unpack(self, data: Uint8Array, num_eights: int) -> FixedWidth:
        packed = np.zeros(num_eights * self._packed_bits, np.uint8)
        packed[: len(data)] = data
        return _unpack_bits(packed.reshape(num_eights, -1), self._bits, self._signed)


class BitpackedForNonNeg(ArrayEncoding):
    """Blocks of 1024 values that are never negative."""

    MESSAGE: ClassVar[str] = "bitpacked_for_non_neg"

    def __init__(self, message: pb.BitpackedForNonNeg, context: ArrayContext) -> None:
        self._context = context
        self._bits = bits_per_value_of(context.arrow_type)
        self._packed_bits = message.compressed_bits_per_value
        self._extent = context.buffer(message.buffer)
        check(message.uncompressed_bits_per_value == self._bits, f"not {self._bits}-bit values")
        check(self._bits in lanes.INTEGER_BITS and self._packed_bits <= self._bits, "packed values of an odd width")
        num_blocks = -(-context.length // lanes.BLOCK)
        self._block_bytes = self._packed_bits * lanes.BLOCK // 8
        check(num_blocks * self._block_bytes <= self._extent.size, "fewer bytes than bitpacked values")

    @classmethod
    def from_pb(cls, message: pb.BitpackedForNonNeg, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context)

    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        if isinstance(rows, RowSlice):
            blocks = np.arange(rows.start // lanes.BLOCK, (rows.stop - 1) // lanes.BLOCK + 1, dtype=np.int64)
        else:
            blocks = np.unique(rows.indices // lanes.BLOCK)
        starts = self._extent.position + blocks * self._block_bytes
        fetched = yield Ranges(starts, starts + self._block_bytes)
        widths = np.full(len(blocks), self._packed_bits, np.int64)
        counts = np.full(len(blocks), lanes.BLOCK, np.int64)
        values = lanes.unpack(fetched.data, fetched.locate(starts), widths, counts, self._bits)
        if isinstance(rows, RowSlice):
            skipped = int(blocks[0]) * lanes.BLOCK
            return array_of(values.slice(rows.start - skipped, rows.stop - skipped), self._context.arrow_type)
        block_of = np.searchsorted(blocks, rows.indices // lanes.BLOCK)
        wanted = block_of * lanes.BLOCK + rows.indices % lanes.BLOCK
        return array_of(select(values, wanted), self._context.arrow_type)


def encode_flat(values: FixedWidth, buffers: PageBuffers) -> pb.ArrayEncoding:
    """Encode values side by side."""
    buffer = buffers.add(values.data[: values.size_bytes])
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=values.bits_per_value, buffer=buffer))


def encode_compressed(data: Uint8Array, scheme: str, level: int | None, buffers: PageBuffers) -> pb.ArrayEncoding:
    """Encode bytes as one compressed buffer."""
    codec = codec_of_scheme(_SCHEMES[scheme], level)
    packed, _ = codec.compress(data, np.array([len(data)], np.int64))
    compression = pb.Compression(scheme=scheme, level=level)
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=8, buffer=buffers.add(packed), compression=compression))


def _unpack_bits(packed: Uint8Array, bits: int, signed: bool) -> FixedWidth:
    """Return the eight values of each row of `packed`, which has as many bytes as a value has bits."""
    num_rows, packed_bits = packed.shape
    mask = np.uint64((1 << packed_bits) - 1)
    sign = np.uint64(1 << (packed_bits - 1) if signed else 0)
    out = np.empty((num_rows, 8), f"<u{bits // 8}")
    for index in range(8):
        first, skipped = divmod(index * packed_bits, 8)
        last = (index * packed_bits + packed_bits - 1) // 8
        words = packed[:, first].astype(np.uint64) >> np.uint64(skipped)
        for byte in range(first + 1, last + 1):
            words |= packed[:, byte].astype(np.uint64) << np.uint64((byte - first) * 8 - skipped)
        out[:, index] = ((words & mask) ^ sign) - sign
    return FixedWidth(out.reshape(-1).view(np.uint8), bits, num_rows * 8)


def _pick(values: FixedWidth, rows: RowSelection) -> FixedWidth:
    if isinstance(rows, RowSlice):
        return values.slice(rows.start, rows.stop)
    picked = select(values, rows.indices)
    assert isinstance(picked, FixedWidth)
    return picked
