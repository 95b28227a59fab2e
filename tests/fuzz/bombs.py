"""Small files that claim far more than they hold, with the expected outcome of reading each."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage

from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.writer import FileWriter
from lance_ops.pb import encodings_v2_0_pb2 as pb20
from lance_ops.pb import encodings_v2_1_pb2 as pb21
from lance_ops.pb import file_pb2
from lance_ops.store.memory import MemoryStore
from tests.checksums import without_checksums
from tests.fuzz.anatomy import Anatomy, LegacyAnatomy, dissect

__all__ = ["BOMBS", "claiming", "write"]

Bomb: TypeAlias = Callable[[], bytes]

_RAW_BYTES = 72 << 20


def write(column: pa.Array, version: str = "2.2", **metadata: str) -> bytes:
    """Return a file of one column."""
    options = {f"lance-encoding:{key.replace('_', '-')}": value for key, value in metadata.items()}
    schema = pa.schema([pa.field("c", column.type, metadata=options or None)])
    store = MemoryStore()
    with FileWriter(store, "f", Schema.from_arrow(schema), FileVersion(version)) as writer:
        writer.write_batch(pa.table([column], schema=schema))
    return bytes(store.get("f").to_pybytes())


def _anatomy(column: pa.Array, version: str = "2.2", **metadata: str) -> Anatomy:
    anatomy = dissect(write(column, version, **metadata))
    assert isinstance(anatomy, Anatomy)
    return anatomy


def _claim(anatomy: Anatomy, num_rows: int) -> bytes:
    """Return the file with `num_rows` stated as the rows of the file and of its only page."""
    anatomy.descriptor.length = num_rows
    (page,) = anatomy.columns[0].pages
    page.message.length = num_rows
    return anatomy.build()


def claiming(column: pa.Array, num_rows: int) -> bytes:
    """Return a file of a column of equal values whose only page claims `num_rows` rows."""
    return _claim(_anatomy(column), num_rows)


def _many_nulls_2_0() -> bytes:
    return _claim(_anatomy(pa.nulls(10, pa.int64()), "2.0"), 1 << 40)


def _packed_into_0_bits() -> bytes:
    anatomy = _anatomy(pa.array([0]), "2.0")
    (page,) = anatomy.columns[0].pages
    packed = pb20.BitpackedForNonNeg(uncompressed_bits_per_value=64, compressed_bits_per_value=0)
    assert isinstance(page.description, pb20.ArrayEncoding)
    packed.buffer.CopyFrom(page.description.nullable.no_nulls.values.flat.buffer)
    page.description = pb20.ArrayEncoding(bitpacked_for_non_neg=packed)
    return _claim(anatomy, 1 << 40)


def _list_of_many_null_items() -> bytes:
    anatomy = _anatomy(pa.array([[1]]), "2.0")
    lists, items = anatomy.columns[0].pages[0], anatomy.columns[1].pages[0]
    assert isinstance(lists.description, pb20.ArrayEncoding)
    lists.description.list.num_items = items.message.length = 1 << 40
    lists.description.list.null_offset_adjustment = (1 << 40) + 1
    lists.buffers[0].data = struct.pack("<Q", 1 << 40)
    items.description = pb20.ArrayEncoding(nullable=pb20.Nullable(all_nulls=pb20.Nullable.AllNull()))
    return anatomy.build()


def _wide_nulls() -> bytes:
    anatomy = _anatomy(pa.nulls(10, pa.binary(4)))
    anatomy.descriptor.schema.fields[0].logical_type = "fixed_size_binary:2147483647"
    return anatomy.build()


def _long_item() -> bytes:
    """Return a file with a dictionary of a long string, and positions that are packed into 0 bits."""
    anatomy = _anatomy(pa.array(["x" * 250, "y"] * 200))
    (page,) = anatomy.columns[0].pages
    layout: Any = page.description
    assert layout.mini_block_layout.HasField("dictionary")
    layout.mini_block_layout.value_compression.CopyFrom(
        pb21.CompressiveEncoding(inline_bitpacking=pb21.InlineBitpacking(uncompressed_bits_per_value=32))
    )
    num_chunks = 1000
    chunk = struct.pack("<HIxx", 0, 4) + struct.pack("<Ixxxx", 0)  # a header, then a width of 0
    page.buffers[0].data = struct.pack("<I", (len(chunk) // 8 - 1) << 4 | 10) * num_chunks
    page.buffers[1].data = chunk * num_chunks
    layout.mini_block_layout.num_items = 1024 * num_chunks
    return _claim(anatomy, 1024 * num_chunks)


def _bomb_of(codec: str, frame: Callable[[bytes], bytes]) -> Bomb:
    def build() -> bytes:
        anatomy = _anatomy(pa.array([f"some text {i % 7}" for i in range(3000)]), compression=codec)
        (page,) = anatomy.columns[0].pages
        raw = bytes(_RAW_BYTES)
        bomb = frame(pa.Codec("lz4_raw" if codec == "lz4" else codec).compress(raw, asbytes=True))
        size = len(bomb) + -len(bomb) % 8
        chunk = struct.pack("<HIxx", 0, len(bomb)) + bomb.ljust(size, b"\0")
        page.buffers[0].data = struct.pack("<I", (len(chunk) // 8 - 1) << 4)
        page.buffers[1].data = chunk
        return anatomy.build()

    return build


def _repeated_page() -> bytes:
    anatomy = _anatomy(pa.array(np.random.default_rng(0).bytes(1) * 60_000 for _ in range(2)), "2.0")
    (page,) = anatomy.columns[0].pages
    anatomy.columns[0].pages = [page] * 4000
    anatomy.descriptor.length = 8000
    return anatomy.build()


def _repeated_blob() -> bytes:
    anatomy = _anatomy(pa.array([b"z" * 200_000] * 900, pa.large_binary()).slice(0, 1), blob="true")
    (page,) = anatomy.columns[0].pages
    layout: Any = page.description
    rows = 4000
    chunk = struct.pack("<HIxx", 0, 16 * rows) + struct.pack("<QQ", 0, 200_000) * rows
    page.buffers[0].data = struct.pack("<I", (len(chunk) // 8 - 1) << 4)
    page.buffers[1].data = chunk
    layout.blob_layout.inner_layout.mini_block_layout.num_items = rows
    return _claim(anatomy, rows)


def _repeated_batch_of_strings() -> bytes:
    anatomy = dissect(write(pa.array(["s" * 200_000]), "0.1"))
    assert isinstance(anatomy, LegacyAnatomy)
    position, length = struct.unpack_from("<qq", anatomy.body, anatomy.metadata.page_table_position)
    batches = 1050  # 200 MiB of strings, which is more than one read may return
    anatomy.metadata.ClearField("statistics")
    anatomy.metadata.ClearField("batch_offsets")
    anatomy.metadata.batch_offsets.extend(range(batches + 1))
    anatomy.metadata.page_table_position = len(anatomy.body)
    anatomy.body += struct.pack("<qq", position, length) * batches
    return anatomy.build()


def _overlapping_columns() -> bytes:
    data = write(pa.array(range(20_000)))
    *rest, num_globals, _, major, minor, magic = struct.unpack("<QQQIIHH4s", data[-40:])
    extent = data[rest[1] : rest[1] + 16]
    table = extent * 3000
    body = data[: rest[2]] + table + data[rest[2] : -40]
    rest[1:] = rest[2], rest[2] + len(table)
    fields = [_field(i, -1, "int64") for i in range(3000)]
    descriptor = file_pb2.FileDescriptor(length=20_000)
    descriptor.schema.fields.extend(fields)
    described = descriptor.SerializeToString()
    globals_at = len(body) + len(described)
    body += described + struct.pack("<QQ", len(body), len(described))
    return body + struct.pack("<QQQIIHH4s", rest[0], rest[1], globals_at, num_globals, 3000, major, minor, magic)


def _schema_of(fields: list[file_pb2.Field]) -> bytes:
    anatomy = _anatomy(pa.array([1]))
    del anatomy.descriptor.schema.fields[:]
    anatomy.descriptor.schema.fields.extend(fields)
    return anatomy.build()


def _field(number: int, parent: int, logical_type: str = "struct") -> file_pb2.Field:
    return file_pb2.Field(name="c", id=number, parent_id=parent, logical_type=logical_type)


def _nested_encoding() -> bytes:
    """Return a file with a description nested 10,000 deep, built from bytes since protobuf cannot build it."""
    flat = pb21.CompressiveEncoding(flat=pb21.Flat(bits_per_value=64)).SerializeToString()
    inner = flat
    for _ in range(10_000):
        general = b"\x1a" + _varint(len(inner)) + inner
        inner = b"\x52" + _varint(len(general)) + general
    mini_block = b"\x1a" + _varint(len(inner)) + inner
    layout = b"\x0a" + _varint(len(mini_block)) + mini_block
    return _with_description(layout)


def _with_description(layout: bytes) -> bytes:
    anatomy = _anatomy(pa.array([1]))
    (page,) = anatomy.columns[0].pages
    anatomy.columns[0].pages = []
    described = AnyMessage(type_url=page.type_url, value=layout).SerializeToString()
    anatomy.columns[0].message.pages.add(length=1).encoding.direct.encoding = described
    return anatomy.build()


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _not_utf8() -> bytes:
    anatomy = _anatomy(pa.array(["abc", "défg", None]))
    anatomy.columns[0].pages[0].buffers[1].data = anatomy.columns[0].pages[0].buffers[1].data.replace(b"\xa9", b"\xe9")
    return anatomy.build()


def _half_a_character() -> bytes:
    """Return a file of strings that are not UTF-8, though their concatenation is."""
    return without_checksums(write(pa.array([b"\xc3", b"\xa9"]))).replace(b"binary", b"string")


def _descending_offsets() -> bytes:
    anatomy = _anatomy(pa.array(["abc", "def", "ghi"]), "2.0")
    anatomy.columns[0].pages[0].buffers[0].data = struct.pack("<QQQ", 6, 3, 9)
    return anatomy.build()


BOMBS: dict[str, tuple[Bomb, str]] = {
    "2^60 nulls": (lambda: claiming(pa.nulls(10, pa.int64()), 1 << 60), "ReadTooLarge+rows"),
    "2^40 equal numbers": (lambda: claiming(pa.array([7] * 10), 1 << 40), "ReadTooLarge+rows"),
    "2^40 equal strings": (lambda: claiming(pa.array(["x" * 50] * 10), 1 << 40), "ReadTooLarge+rows"),
    "2^60 values of type null": (lambda: claiming(pa.nulls(10), 1 << 60), "ReadTooLarge+rows"),
    "2^61 values of no width": (lambda: claiming(pa.array([b""] * 10, pa.binary(0)), 1 << 61), "ReadTooLarge+rows"),
    "more rows than 63 bits count": (lambda: claiming(pa.nulls(10, pa.int64()), 1 << 63), "CorruptFile"),
    "2^40 nulls in 2.0": (_many_nulls_2_0, "ReadTooLarge+rows"),
    "2^40 numbers of 0 bits": (_packed_into_0_bits, "ReadTooLarge+rows"),
    "a list of 2^40 items": (_list_of_many_null_items, "ReadTooLarge"),
    "null values of 2 GiB each": (_wide_nulls, "ReadTooLarge"),
    "one long item for every row": (_long_item, "ReadTooLarge+rows"),
    "zstd": (_bomb_of("zstd", lambda frame: struct.pack("<Q", _RAW_BYTES) + frame), "ReadTooLarge"),
    "a bare zstd frame": (_bomb_of("zstd", lambda frame: frame), "ReadTooLarge"),
    "lz4": (_bomb_of("lz4", lambda frame: struct.pack("<I", _RAW_BYTES) + frame), "rows"),
    "overlapping pages": (_repeated_page, "CorruptFile"),
    "overlapping columns": (_overlapping_columns, "CorruptFile"),
    "overlapping blobs": (_repeated_blob, "ReadTooLarge"),
    "overlapping strings of batches": (_repeated_batch_of_strings, "ReadTooLarge+rows"),
    "a field that is its own parent": (lambda: _schema_of([_field(0, 0)]), "CorruptFile"),
    "fields in a cycle": (lambda: _schema_of([_field(1, -1), _field(2, 1), _field(1, 2)]), "CorruptFile"),
    "fields with the same id": (lambda: _schema_of([_field(0, -1, "int64"), _field(0, -1, "string")]), "CorruptFile"),
    "structs 10,000 deep": (lambda: _schema_of([_field(i, i - 1) for i in range(10_000)]), "UnsupportedFeature"),
    "lists 61 deep": (
        lambda: _schema_of([*(_field(i, i - 1, "list") for i in range(61)), _field(61, 60, "int64")]),
        "CorruptFile",
    ),
    "a type 5,000 deep": (
        lambda: _schema_of([_field(0, -1, "fixed_size_list:" * 5000 + "int8" + ":1" * 5000)]),
        "CorruptFile",
    ),
    "an encoding 10,000 deep": (_nested_encoding, "CorruptFile"),
    "text that is not UTF-8": (_not_utf8, "CorruptFile"),
    "text cut inside a character": (_half_a_character, "CorruptFile"),
    "offsets that descend": (_descending_offsets, "CorruptFile"),
}
