"""Encode the metadata of columns that have one page, with all rows of the file: that of one column, or of many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from google.protobuf.any_pb2 import Any

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array
from lance_ops.file.container.column_metadata import COLUMN_ENCODING_URL, PLAIN_COLUMN, encode_column
from lance_ops.kernels import read_only
from lance_ops.pb import file2_pb2

__all__ = ["encode_single_page", "encode_single_pages"]

_PAGES_TAG = b"\x12"
"""What stands before each page in a column's metadata: field 2, which has a length."""

_FEW = 256
"""Fewer columns are encoded one by one, so that a process which writes a few short files loads no compiled loop."""


def encode_single_page(
    positions: Sequence[int], sizes: Sequence[int], length: int, description_url: str, encoding: bytes
) -> bytes:
    """Return a column's metadata; `positions` and `sizes` are those of the page's buffers."""
    before, page = _shared_parts(length, description_url, encoding)
    places = file2_pb2.ColumnMetadata.Page(buffer_offsets=positions, buffer_sizes=sizes).SerializeToString()
    return b"".join((before, _PAGES_TAG, _varint(len(places) + len(page)), places, page))


def encode_single_pages(buffers: Int64Array, length: int, description_url: str, encoding: bytes) -> list[bytes]:
    """Return the metadata of columns whose pages have equal lengths and descriptions.

    `buffers[i]` has the position and size of each buffer of page `i`.
    """
    if len(buffers) < _FEW:
        places = [([position for position, _ in each], [size for _, size in each]) for each in buffers.tolist()]
        return [encode_single_page(*each, length, description_url, encoding) for each in places]
    before, page = _shared_parts(length, description_url, encoding)
    ends = np.empty(len(buffers), np.int64)
    out = np.empty(len(buffers) * (len(before) + len(page) + 32) + 12 * buffers.size, np.uint8)
    prefix, suffix = np.frombuffer(before, np.uint8), np.frombuffer(page, np.uint8)
    kernels.write_columns(read_only(buffers).reshape(-1), buffers.shape[1], prefix, suffix, out, ends)
    messages = out[: int(ends[-1])].tobytes()
    return [messages[start:stop] for start, stop in pairwise([0, *ends.tolist()])]


@lru_cache(maxsize=256)
def _shared_parts(length: int, description_url: str, encoding: bytes) -> tuple[bytes, bytes]:
    """Return what stands before the page in a column's metadata, and the page without its buffers."""
    page = file2_pb2.ColumnMetadata.Page(length=length)
    page.encoding.direct.encoding = Any(type_url=description_url, value=encoding).SerializeToString()
    before = encode_column(file2_pb2.ColumnMetadata(), COLUMN_ENCODING_URL, PLAIN_COLUMN)
    return before, page.SerializeToString()


def _varint(number: int) -> bytes:
    """Return a number as protobuf writes it: seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
