"""The container of 2.x files: where columns, pages and global buffers are.

    page buffers and global buffers, each 64-aligned     (the file starts with the first one)
    column metadata messages
    column offset table          num_columns x (u64 position, u64 size)
    global buffer offset table   num_global_buffers x (u64 position, u64 size)
    footer: u64 column metadata start | u64 column table | u64 global buffer table
            u32 num_global_buffers | u32 num_columns | u16 major | u16 minor | "LANC"

Global buffer 0 describes the file: its schema and number of rows. Everything here is bytes to values and back; no I/O.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError

from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.core.versions import FileVersion
from lance_ops.pb import file2_pb2
from lance_ops.wire import MAGIC, parse_message

__all__ = [
    "ALIGNMENT",
    "FOOTER_BYTES",
    "MAX_ROWS",
    "Column",
    "Extent",
    "Footer",
    "Page",
    "decode_column",
    "read_footer_version",
]

ALIGNMENT = 64
"""Every buffer of a page starts at a multiple of this."""

_FOOTER = struct.Struct("<QQQIIHH4s")
_VERSION = struct.Struct("<HH4s")
_EXTENT = struct.Struct("<QQ")
FOOTER_BYTES = _FOOTER.size

MAX_ROWS = 1 << 62
"""No page and no file has more rows: sums of lengths stay within 64-bit arithmetic."""


class Extent(NamedTuple):
    """Some bytes of the file."""

    position: int
    size: int

    @property
    def end(self) -> int:
        return self.position + self.size


@dataclass(frozen=True, slots=True)
class Footer:
    """The last bytes of a 2.x file."""

    column_metadata_start: int
    column_table: int
    global_buffer_table: int
    num_global_buffers: int
    num_columns: int
    version: FileVersion

    @classmethod
    def decode(cls, tail: bytes, size_bytes: int, path: str) -> Footer:
        """Parse the file's last bytes; raise `CorruptFile` if they point outside of its `size_bytes`."""
        if len(tail) < FOOTER_BYTES:
            raise CorruptFile(path, "footer", f"the file has {size_bytes} bytes, the footer alone takes {FOOTER_BYTES}")
        start, columns, buffers, num_buffers, num_columns, major, minor, _ = _FOOTER.unpack(tail[-FOOTER_BYTES:])
        footer = cls(start, columns, buffers, num_buffers, num_columns, FileVersion.from_numbers(major, minor, path))
        end = size_bytes - FOOTER_BYTES
        for name, table in (("column table", footer.column_extent), ("global buffer table", footer.global_extent)):
            if table.end > end:
                raise CorruptFile(path, "footer", f"the {name} ends at byte {table.end}, the footer starts at {end}")
        if start > end:
            raise CorruptFile(path, "footer", f"column metadata starts at byte {start}, the footer at {end}")
        if num_buffers == 0:
            raise CorruptFile(path, "footer", "no global buffer, so no schema")
        return footer

    def encode(self) -> bytes:
        """Return the footer's bytes."""
        return _FOOTER.pack(
            self.column_metadata_start,
            self.column_table,
            self.global_buffer_table,
            self.num_global_buffers,
            self.num_columns,
            *self.version.footer,
            MAGIC,
        )

    @property
    def column_extent(self) -> Extent:
        """The column offset table."""
        return Extent(self.column_table, self.num_columns * _EXTENT.size)

    @property
    def global_extent(self) -> Extent:
        """The global buffer offset table."""
        return Extent(self.global_buffer_table, self.num_global_buffers * _EXTENT.size)


def read_footer_version(tail: bytes, path: str) -> FileVersion:
    """Return the version that any Lance file's last eight bytes state; raise `CorruptFile` if they are no such."""
    if len(tail) < _VERSION.size:
        raise CorruptFile(path, "footer", f"{len(tail)} bytes are too few for a Lance file")
    major, minor, magic = _VERSION.unpack(tail[-_VERSION.size :])
    if magic != MAGIC:
        raise CorruptFile(path, "footer", f"ends with {magic!r}, not {MAGIC!r}: not a Lance file, or cut short")
    return FileVersion.from_numbers(major, minor, path)


def encode_extents(extents: Iterable[Extent]) -> bytes:
    """Return an offset table's bytes."""
    return b"".join(_EXTENT.pack(extent.position, extent.size) for extent in extents)


def decode_extents(table: bytes, size_bytes: int, path: str, place: str) -> tuple[Extent, ...]:
    """Parse an offset table; raise `CorruptFile` for an entry that leaves the file."""
    extents = tuple(map(Extent._make, _EXTENT.iter_unpack(table)))
    _check_inside(extents, size_bytes, path, place)
    check_apart([extent.size for extent in extents], size_bytes, path, f"{place} table")
    return extents


def check_apart(sizes: Iterable[int], size_bytes: int, path: str, place: str) -> None:
    """Raise `CorruptFile` if parts of a file take more than all of it: some of them lie on others."""
    total = sum(sizes)
    if total > size_bytes:
        raise CorruptFile(path, place, f"parts of {total} bytes in a file of {size_bytes}: they overlap")


@dataclass(frozen=True)
class Page:
    """One page of a column; `encoding` is the description in its wire form, parsed when the page is first read."""

    length: int
    buffers: tuple[Extent, ...]
    priority: int
    type_url: str
    encoding: bytes


@dataclass(frozen=True)
class Column:
    """One column's pages, in row order."""

    pages: tuple[Page, ...]
    buffers: tuple[Extent, ...]
    encoding: bytes

    @property
    def page_starts(self) -> tuple[int, ...]:
        """The first row (or item) of every page, and the end of the last."""
        return tuple(accumulate([page.length for page in self.pages], initial=0))

    @property
    def size_bytes(self) -> int:
        """Bytes of all pages' buffers."""
        return sum([buffer.size for page in self.pages for buffer in page.buffers])

    @property
    def length(self) -> int:
        """Rows (or items) in all pages."""
        return self.page_starts[-1]


def decode_column(data: bytes | memoryview, size_bytes: int, path: str, place: str) -> Column:
    """Parse a column metadata message; raise `CorruptFile` if a buffer of it leaves the file."""
    message = parse_message(file2_pb2.ColumnMetadata, data, path, place)
    pages = []
    total = 0
    for index, page in enumerate(message.pages):
        where = f"{place}, page {index}"
        type_url, encoding = _unpack(page.encoding, path, where)
        buffers = _extents(page.buffer_offsets, page.buffer_sizes, size_bytes, path, where)
        length = page.length
        total += length
        if total > MAX_ROWS:
            raise CorruptFile(path, where, f"a length of {length} rows")
        pages.append(Page(length, buffers, page.priority, type_url, encoding))
    buffers = _extents(message.buffer_offsets, message.buffer_sizes, size_bytes, path, place)
    encoding = _unpack(message.encoding, path, place)[1] if message.encoding.WhichOneof("location") else b""
    return Column(tuple(pages), buffers, encoding)


def add_page(
    column: file2_pb2.ColumnMetadata,
    length: int,
    buffers: Iterable[Extent],
    priority: int,
    type_url: str,
    encoding: bytes,
) -> None:
    """Add a page, as `Page` has it, to the metadata of a column that is being written."""
    page = column.pages.add(length=length, priority=priority)
    for buffer in buffers:
        page.buffer_offsets.append(buffer.position)
        page.buffer_sizes.append(buffer.size)
    page.encoding.direct.encoding = Any(type_url=type_url, value=encoding).SerializeToString()


def encode_column(column: file2_pb2.ColumnMetadata, type_url: str, encoding: bytes) -> bytes:
    """Return the bytes of a column's metadata, with the encoding of the column as a whole, which it lacks so far."""
    return _encode_column_encoding(type_url, encoding) + column.SerializeToString()


@lru_cache(maxsize=64)
def _encode_column_encoding(type_url: str, encoding: bytes) -> bytes:
    """Return the bytes that a column metadata message begins with; nearly all columns have the same."""
    message = file2_pb2.ColumnMetadata()
    message.encoding.direct.encoding = Any(type_url=type_url, value=encoding).SerializeToString()
    return message.SerializeToString()


def _unpack(encoding: file2_pb2.Encoding, path: str, place: str) -> tuple[str, bytes]:
    location = encoding.WhichOneof("location")
    if location == "direct":
        try:
            description = Any.FromString(encoding.direct.encoding)
        except DecodeError as error:
            raise CorruptFile(path, place, f"not an encoding: {error}") from error
        return description.type_url, description.value
    if location == "indirect":
        raise UnsupportedFeature("an encoding described elsewhere in the file", f"{path}: {place}")
    if location is None:
        raise CorruptFile(path, place, "no encoding")
    return "", b""


def _extents(
    positions: Sequence[int], sizes: Sequence[int], size_bytes: int, path: str, place: str
) -> tuple[Extent, ...]:
    if not positions and not sizes:
        return ()
    if len(positions) != len(sizes):
        raise CorruptFile(path, place, f"{len(positions)} buffer positions, {len(sizes)} sizes")
    extents = tuple(map(Extent._make, zip(positions, sizes, strict=True)))
    _check_inside(extents, size_bytes, path, f"{place}, buffer")
    return extents


def _check_inside(extents: Iterable[Extent], size_bytes: int, path: str, place: str) -> None:
    for index, (position, size) in enumerate(extents):
        if position + size > size_bytes:
            raise CorruptFile(path, f"{place} {index}", f"ends at byte {position + size} of a file of {size_bytes}")
