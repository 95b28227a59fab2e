"""Hand-made files of version 2.0, with pages that current writers do not produce.

The bits are computed here in plain integer arithmetic from the public description of the format, so that the tests do
not compare the library with itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.container import ALIGNMENT, Footer, encode_extents
from lance_ops.file.container.column_metadata import add_page, encode_column
from lance_ops.file.page_reading import Extent
from lance_ops.pb import encodings_v2_0_pb2 as pb
from lance_ops.pb import file2_pb2, file_pb2
from lance_ops.wire.fields import schema_to_pb

__all__ = ["HAND_MADE", "HandMade", "PageBytes", "file_of"]

PLAIN = pb.ColumnEncoding.FromString(b"\n\x00").SerializeToString()


@dataclass(frozen=True)
class PageBytes:
    """One page of a column."""

    described: pb.ArrayEncoding
    buffers: tuple[bytes, ...]
    length: int


@dataclass(frozen=True)
class HandMade:
    """A column: its expected values, its pages, and the encodings that a reader must find in it."""

    name: str
    column: pa.Array
    pages: tuple[PageBytes, ...]
    encodings: set[str]
    reference_reads: bool = True
    """Whether the reference reads such pages; it panics on others."""
    column_encoding: bytes = PLAIN
    column_buffers: tuple[bytes, ...] = ()

    @property
    def table(self) -> pa.Table:
        return pa.table({"c": self.column})

    def data(self) -> bytes:
        """Return the file; each page has a column of its own."""
        pages = [[page] for page in self.pages]
        return file_of(self.table.schema, pages, len(self.column), self.column_encoding, self.column_buffers)


def file_of(
    schema: pa.Schema,
    columns: Sequence[Sequence[PageBytes]],
    num_rows: int,
    column_encoding: bytes = PLAIN,
    column_buffers: Sequence[bytes] = (),
) -> bytes:
    """Return a file with these columns of pages; every column has a copy of `column_buffers`."""
    data = bytearray()

    def add(part: bytes) -> Extent:
        data.extend(bytes(-len(data) % ALIGNMENT))
        data.extend(part)
        return Extent(len(data) - len(part), len(part))

    written = []
    for pages in columns:
        first_row, column = 0, file2_pb2.ColumnMetadata()
        for page in pages:
            encoding = page.described.SerializeToString()
            extents = map(add, page.buffers)
            add_page(column, page.length, extents, first_row, "/lance.encodings.ArrayEncoding", encoding)
            first_row += page.length
        for own in map(add, column_buffers):
            column.buffer_offsets.append(own.position)
            column.buffer_sizes.append(own.size)
        written.append(column)
    fields = file_pb2.Schema(fields=schema_to_pb(Schema.from_arrow(schema)))
    described = add(file_pb2.FileDescriptor(schema=fields, length=num_rows).SerializeToString())
    start, places = len(data), []
    for column in written:
        message = encode_column(column, "/lance.encodings.ColumnEncoding", column_encoding)
        places.append(Extent(len(data), len(message)))
        data.extend(message)
    tables = len(data)
    data.extend(encode_extents(places))
    footer = Footer(start, tables, len(data), 1, len(written), FileVersion.V2_0)
    data.extend(encode_extents([described]))
    return bytes(data) + footer.encode()


def _buffer(index: int, owner: pb.Buffer.BufferType = pb.Buffer.page) -> pb.Buffer:
    return pb.Buffer(buffer_index=index, buffer_type=owner)


def _flat(bits: int, index: int = 0, scheme: str = "") -> pb.ArrayEncoding:
    compression = pb.Compression(scheme=scheme) if scheme else None
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=_buffer(index), compression=compression))


def _no_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))


def _bitpacked(packed: int, bits: int, index: int = 0, *, signed: bool = False) -> pb.ArrayEncoding:
    message = pb.Bitpacked(
        compressed_bits_per_value=packed, uncompressed_bits_per_value=bits, buffer=_buffer(index), signed=signed
    )
    return pb.ArrayEncoding(bitpacked=message)


def _bits_end_to_end(values: Sequence[int], bits: int) -> bytes:
    """Return the lowest `bits` of every value end to end, lowest bit first."""
    stream = 0
    for index, value in enumerate(values):
        stream |= (value & ((1 << bits) - 1)) << (index * bits)
    return stream.to_bytes(-(-len(values) * bits // 8), "little")


def _fast_lanes(values: Sequence[int], width: int, bits: int) -> bytes:
    """Pack values of `width` bits into `bits` each, in blocks of 1024 values; the last block is padded."""
    lanes, order = 1024 // width, (0, 4, 2, 6, 1, 5, 3, 7)
    out = b""
    for start in range(0, len(values), 1024):
        block = [*values[start : start + 1024], *[0] * 1024][:1024]
        words = [0] * (lanes * bits)
        for lane in range(lanes):
            places = [order[row // 8] * 16 + row % 8 * 128 + lane for row in range(width)]
            stream = sum(block[place] << (row * bits) for row, place in enumerate(places))
            for word in range(bits):
                words[word * lanes + lane] = stream >> (word * width) & ((1 << width) - 1)
        out += b"".join(word.to_bytes(width // 8, "little") for word in words)
    return out


def _compressed(raw: bytes, codec: str) -> bytes:
    prefix = len(raw).to_bytes(8 if codec == "zstd" else 4, "little")
    frame: bytes = pa.Codec("zstd" if codec == "zstd" else "lz4_raw").compress(raw, asbytes=True)
    return prefix + frame


def _integers(bits: int, *, signed: bool, count: int = 1003) -> list[int]:
    generator = np.random.default_rng(bits)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    drawn = generator.integers(low, high, count, np.int64 if signed else np.uint64, endpoint=True)
    return [low, high, *drawn.tolist()]


def _a_bitpacked_column(arrow_type: pa.DataType, bits: int, *, signed: bool) -> HandMade:
    values = _integers(bits, signed=signed)
    described = _no_nulls(_bitpacked(bits, arrow_type.bit_width, signed=signed))
    page = PageBytes(described, (_bits_end_to_end(values, bits),), len(values))
    name = f"{arrow_type} in {bits} {'signed ' if signed else ''}bits"
    return HandMade(name, pa.array(values, arrow_type), (page,), {"no_nulls", "bitpacked"})


def _a_column_in_lanes(arrow_type: pa.DataType, bits: int) -> HandMade:
    values = _integers(bits, signed=False, count=2500) if bits else [0] * 1500
    message = pb.BitpackedForNonNeg(
        compressed_bits_per_value=bits, uncompressed_bits_per_value=arrow_type.bit_width, buffer=_buffer(0)
    )
    described = _no_nulls(pb.ArrayEncoding(bitpacked_for_non_neg=message))
    page = PageBytes(described, (_fast_lanes(values, arrow_type.bit_width, bits),), len(values))
    name = f"{arrow_type} in lanes of {bits} bits"
    return HandMade(name, pa.array(values, arrow_type), (page,), {"bitpacked_for_non_neg"})


def _strings_of_one_size(arrow_type: pa.DataType) -> HandMade:
    values: list[Any] = [f"{i:05d}" for i in range(300)]
    message = pb.FixedSizeBinary(bytes=_no_nulls(_flat(8)), byte_width=5)
    page = PageBytes(_no_nulls(pb.ArrayEncoding(fixed_size_binary=message)), ("".join(values).encode(),), len(values))
    column = pa.array(values).cast(arrow_type)
    return HandMade(f"{arrow_type} of one size", column, (page,), {"fixed_size_binary", "flat"})


def _a_constant_column() -> HandMade:
    page = PageBytes(
        _no_nulls(pb.ArrayEncoding(constant=pb.Constant(value=(-7).to_bytes(4, "little", signed=True)))), (), 40
    )
    column = pa.array([-7] * 40, pa.int32())
    return HandMade("one value in the description", column, (page,), {"constant"}, reference_reads=False)


def _compressed_integers(codec: str) -> HandMade:
    values = np.arange(500, dtype="<i8")
    page = PageBytes(_no_nulls(_flat(64, scheme=codec)), (_compressed(values.tobytes(), codec),), len(values))
    return HandMade(f"integers in {codec}", pa.array(values), (page,), {codec, "flat"})


def _nulls_above_bitpacked() -> HandMade:
    values = _integers(12, signed=False)
    present = [index % 3 > 0 for index in range(len(values))]
    flags = np.packbits(present, bitorder="little").tobytes()
    some = pb.Nullable.SomeNull(validity=_flat(1), values=_bitpacked(12, 32, 1))
    page = PageBytes(
        pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=some)), (flags, _bits_end_to_end(values, 12)), len(values)
    )
    column = pa.array([value if there else None for value, there in zip(values, present, strict=True)], pa.uint32())
    return HandMade("nulls above bitpacked values", column, (page,), {"some_nulls", "bitpacked", "flat"})


def _words_by_bitpacked_positions() -> HandMade:
    words = ["", "red", "green", "blue"]
    positions = [index * 7 % 5 for index in range(400)]
    ends = np.cumsum([len(word) for word in words]).astype("<u8")
    items = pb.Binary(indices=_no_nulls(_flat(64, 1)), bytes=_flat(8, 2), null_adjustment=int(ends[-1]) + 1)
    message = pb.Dictionary(
        indices=_no_nulls(_bitpacked(3, 8)), items=pb.ArrayEncoding(binary=items), num_dictionary_items=len(words)
    )
    buffers = (_bits_end_to_end(positions, 3), ends.tobytes(), "".join(words).encode())
    column = pa.array([words[position - 1] if position else None for position in positions])
    page = PageBytes(pb.ArrayEncoding(dictionary=message), buffers, len(positions))
    return HandMade("words by bitpacked positions", column, (page,), {"dictionary", "bitpacked", "binary"})


def _lists_with_bitpacked_offsets() -> HandMade:
    lengths = [index % 4 for index in range(300)]
    ends = np.cumsum(lengths).tolist()
    items = np.arange(ends[-1], dtype="<i4")
    offsets = _no_nulls(_bitpacked(10, 64))
    described = pb.List(offsets=offsets, null_offset_adjustment=ends[-1] + 1, num_items=ends[-1])
    header = PageBytes(pb.ArrayEncoding(list=described), (_bits_end_to_end(ends, 10),), len(ends))
    values = PageBytes(_no_nulls(_flat(32)), (items.tobytes(),), len(items))
    column = pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), pa.array(items))
    return HandMade("lists with bitpacked offsets", column, (header, values), {"list", "bitpacked", "flat"})


def _values_in_buffers_of_the_column() -> HandMade:
    """Words whose positions are in a buffer of the page, and whose offsets and bytes are in buffers of the column."""
    words = ["red", "green", "blue"]
    positions = [index * 7 % 4 for index in range(400)]
    ends = np.cumsum([len(word) for word in words]).astype("<u8")
    shared = [
        pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=_buffer(index, pb.Buffer.column)))
        for index, bits in ((1, 64), (2, 8))
    ]
    items = pb.Binary(indices=_no_nulls(shared[0]), bytes=shared[1], null_adjustment=int(ends[-1]) + 1)
    message = pb.Dictionary(
        indices=_no_nulls(_flat(8)), items=pb.ArrayEncoding(binary=items), num_dictionary_items=len(words)
    )
    page = PageBytes(pb.ArrayEncoding(dictionary=message), (bytes(positions),), len(positions))
    column = pa.array([words[position - 1] if position else None for position in positions])
    return HandMade(
        "words in buffers of the column",
        column,
        (page,),
        {"dictionary", "binary", "flat"},
        column_buffers=(b"another", ends.tobytes(), "".join(words).encode()),
    )


def _a_column_with_zone_statistics() -> HandMade:
    """Integers with zone statistics, which readers may ignore; the current reference refuses them."""
    values = np.arange(600, dtype="<i4")
    zones = pb.ZoneIndex(
        rows_per_zone=100,
        zone_map_buffer=_buffer(0, pb.Buffer.column),
        inner=pb.ColumnEncoding.FromString(PLAIN),
    )
    return HandMade(
        "integers beside statistics",
        pa.array(values),
        (PageBytes(_no_nulls(_flat(32)), (values.tobytes(),), len(values)),),
        {"flat"},
        reference_reads=False,
        column_encoding=pb.ColumnEncoding(zone_index=zones).SerializeToString(),
        column_buffers=(b"statistics of six zones",),
    )


def _blobs_with_zone_statistics() -> HandMade:
    """Blobs, stored as positions in the file, as current writers do, but with zone statistics."""
    values = [b"", None, b"in the file's first bytes", b"", None]
    places = np.array([(0, 0), (1, 0), (0, 25), (0, 0), (1, 0)], "<u8")
    packed = pb.PackedStruct(inner=[_no_nulls(_flat(64)), _no_nulls(_flat(64))], buffer=_buffer(1))
    blob = pb.ColumnEncoding(blob=pb.Blob(inner=pb.ColumnEncoding.FromString(PLAIN)))
    page = PageBytes(pb.ArrayEncoding(packed_struct=packed), (b"in the file's first bytes", places.tobytes()), 5)
    return HandMade(
        "blobs beside statistics",
        pa.array(values, pa.large_binary()),
        (page,),
        {"blob", "packed_struct"},
        reference_reads=False,
        column_encoding=pb.ColumnEncoding(zone_index=pb.ZoneIndex(inner=blob)).SerializeToString(),
    )


HAND_MADE = (
    _a_bitpacked_column(pa.uint8(), 3, signed=False),
    _a_bitpacked_column(pa.uint16(), 11, signed=False),
    _a_bitpacked_column(pa.uint32(), 17, signed=False),
    _a_bitpacked_column(pa.uint64(), 33, signed=False),
    _a_bitpacked_column(pa.uint64(), 63, signed=False),
    _a_bitpacked_column(pa.uint64(), 64, signed=False),
    _a_bitpacked_column(pa.int8(), 5, signed=True),
    _a_bitpacked_column(pa.int16(), 16, signed=True),
    _a_bitpacked_column(pa.int32(), 9, signed=True),
    _a_bitpacked_column(pa.int64(), 50, signed=True),
    _a_column_in_lanes(pa.uint8(), 3),
    _a_column_in_lanes(pa.uint16(), 9),
    _a_column_in_lanes(pa.int32(), 20),
    _a_column_in_lanes(pa.int64(), 40),
    _strings_of_one_size(pa.string()),
    _strings_of_one_size(pa.binary()),
    _strings_of_one_size(pa.large_string()),
    _a_constant_column(),
    _compressed_integers("zstd"),
    _compressed_integers("lz4"),
    _nulls_above_bitpacked(),
    _words_by_bitpacked_positions(),
    _lists_with_bitpacked_offsets(),
    _values_in_buffers_of_the_column(),
    _a_column_with_zone_statistics(),
    _blobs_with_zone_statistics(),
)
