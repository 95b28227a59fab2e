"""Column metadata of 2.x files: the pages of each column, where their buffers are and how they are encoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError

from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.encodings import CorruptValues
from lance_ops.file.container.footer import check_inside
from lance_ops.file.page_reading import Extent
from lance_ops.pb import file2_pb2
from lance_ops.wire import parse_message

__all__ = [
    "COLUMN_ENCODING_URL",
    "MAX_ROWS",
    "PLAIN_COLUMN",
    "Column",
    "Page",
    "add_page",
    "decode_any",
    "decode_column",
    "decode_encoding",
    "encode_column",
]

MAX_ROWS = 1 << 62
"""No page and no file has more rows, so that sums of lengths fit into 64 bits."""

COLUMN_ENCODING_URL = "/lance.encodings.ColumnEncoding"

PLAIN_COLUMN = b"\n\x00"
"""A `ColumnEncoding` message with the field `values` set: nothing is encoded for the column as a whole."""

_MAX_SHARED_BYTES = 4096
"""Longer descriptions are parsed each time: they hold symbol tables or values, which few pages have in common."""


class Page(NamedTuple):
    """One page of a column; `encoding` is the page's description, parsed when the page is first read."""

    length: int
    buffers: tuple[Extent, ...]
    priority: int
    type_url: str
    encoding: bytes


class Column(NamedTuple):
    """One column's pages, in row order."""

    pages: tuple[Page, ...]
    buffers: tuple[Extent, ...]
    encoding: bytes

    @property
    def page_starts(self) -> tuple[int, ...]:
        """The first row (or item) of every page, and the end of the last page."""
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
    """Parse a column metadata message; raise `CorruptFile` if one of its buffers ends beyond the file."""
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


def decode_encoding(data: bytes, path: str, place: str) -> tuple[str, bytes]:
    """Parse an encoding's message as the type and the bytes of what it holds; both are empty if it holds nothing."""
    message = parse_message(file2_pb2.Encoding, data, path, place)
    return _unpack(message, path, place) if message.WhichOneof("location") else ("", b"")


def decode_any(data: bytes) -> tuple[str, bytes]:
    """Parse the bytes of a direct encoding as a type and the bytes of a message; raise `CorruptValues` otherwise."""
    try:
        return _shared_any(data) if len(data) <= _MAX_SHARED_BYTES else _parse_any(data)
    except DecodeError as error:
        raise CorruptValues(f"not an encoding: {error}") from error


def add_page(
    column: file2_pb2.ColumnMetadata,
    length: int,
    buffers: Iterable[Extent],
    priority: int,
    type_url: str,
    encoding: bytes,
) -> None:
    """Add a page to the metadata of a column that is being written; the arguments are the attributes of `Page`."""
    page = column.pages.add(length=length, priority=priority)
    for buffer in buffers:
        page.buffer_offsets.append(buffer.position)
        page.buffer_sizes.append(buffer.size)
    page.encoding.direct.encoding = Any(type_url=type_url, value=encoding).SerializeToString()


def encode_column(column: file2_pb2.ColumnMetadata, type_url: str, encoding: bytes) -> bytes:
    """Return the bytes of a column's metadata, after adding the encoding of the column as a whole."""
    return _encode_column_encoding(type_url, encoding) + column.SerializeToString()


@lru_cache(maxsize=64)
def _encode_column_encoding(type_url: str, encoding: bytes) -> bytes:
    """Return the bytes that a column metadata message begins with; they are the same for nearly all columns."""
    message = file2_pb2.ColumnMetadata()
    message.encoding.direct.encoding = Any(type_url=type_url, value=encoding).SerializeToString()
    return message.SerializeToString()


def _unpack(encoding: file2_pb2.Encoding, path: str, place: str) -> tuple[str, bytes]:
    location = encoding.WhichOneof("location")
    if location == "direct":
        try:
            return decode_any(encoding.direct.encoding)
        except CorruptValues as error:
            raise CorruptFile(path, place, str(error)) from error
    if location == "indirect":
        raise UnsupportedFeature("an encoding described elsewhere in the file", f"{path}: {place}")
    if location is None:
        raise CorruptFile(path, place, "no encoding")
    return "", b""


def _parse_any(data: bytes) -> tuple[str, bytes]:
    description = Any.FromString(data)
    return description.type_url, description.value


_shared_any = lru_cache(maxsize=1024)(_parse_any)
"""The same for the short descriptions of pages and columns, which most files of a table have in common."""


def _extents(
    positions: Sequence[int], sizes: Sequence[int], size_bytes: int, path: str, place: str
) -> tuple[Extent, ...]:
    if not positions and not sizes:
        return ()
    if len(positions) != len(sizes):
        raise CorruptFile(path, place, f"{len(positions)} buffer positions, {len(sizes)} sizes")
    extents = Extent.of_pairs(zip(positions, sizes, strict=True))
    check_inside(extents, size_bytes, path, f"{place}, buffer")
    return extents
