"""Find moments in the statistics of an ORC file's footer that Arrow does not read as they are."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.orc

from lance_ops.maintenance.ingest.decoding.requests import DecodingRefused, RawSource

__all__ = ["check_moments"]


def check_moments(source: RawSource, file: pa.orc.ORCFile) -> None:
    """Refuse moments before 1677 or after 2262: Arrow reads ORC's in nanoseconds, in which they would wrap around.

    Only the statistics in the footer are checked. A writer may have made none.
    """
    start = file.file_length - 1 - file.file_postscript_length - file.file_footer_length
    footer = _decompressed(pa.OSFile(source.path).read_at(file.file_footer_length, start), file)
    for statistics in _messages_in(footer, _STATISTICS):
        for moments in _messages_in(statistics, _TIMESTAMPS):
            for number, value in _protobuf_fields(moments):
                milliseconds = (value >> 1) ^ -(value & 1) if number in _BOUNDS and isinstance(value, int) else 0
                if abs(milliseconds) >= _MAX_INT64_NANOSECONDS_AS_MS:
                    raise DecodingRefused(
                        "it has a moment before 1677 or after 2262, which is not read of ORC; write it as Parquet"
                    )


_STATISTICS, _TIMESTAMPS, _BOUNDS = 7, 9, (1, 2, 3, 4)
"""Fields of ORC's messages: those of a footer for each column, those of timestamps in it, and their bounds there."""

_MAX_INT64_NANOSECONDS_AS_MS = 2**63 // 10**6
"""The milliseconds from 1970 to the last moment that int64 holds in nanoseconds."""


def _decompressed(data: bytes, file: pa.orc.ORCFile) -> bytes:
    """Decompress a part of ORC; return nothing for a compression that is not known here.

    Each block has three bytes before it: twice its length, and one more if it is not compressed.
    """
    if file.compression == "UNCOMPRESSED":
        return data
    plain = []
    while data:
        header = int.from_bytes(data[:3], "little")
        block, data = data[3 : 3 + (header >> 1)], data[3 + (header >> 1) :]
        if header & 1:
            plain.append(block)
        elif file.compression == "ZLIB":
            plain.append(zlib.decompressobj(-zlib.MAX_WBITS).decompress(block, file.compression_size))
        elif file.compression == "ZSTD":
            plain.append(pa.CompressedInputStream(pa.BufferReader(block), "zstd").read(file.compression_size))
        elif file.compression == "SNAPPY":
            size_bytes = min(_varint(block, 0)[0], file.compression_size)
            plain.append(pa.decompress(block, size_bytes, "snappy", asbytes=True))
        else:
            return b""
    return b"".join(plain)


def _messages_in(message: bytes, wanted: int) -> Iterator[bytes]:
    return (value for number, value in _protobuf_fields(message) if number == wanted and isinstance(value, bytes))


def _protobuf_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the numbers of fields and their values: bytes, or integers without a sign."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        size_bytes = {1: 8, 5: 4}.get(key & 7, 0)
        if key & 7 == 2:
            size_bytes, at = _varint(message, at)
        if key & 7 == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
        else:
            yield key >> 3, message[at : at + size_bytes]
            at += size_bytes


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the integer at a place, and the place after it."""
    value = shift = 0
    while at < len(message) and message[at] >= 128:
        value, shift, at = value | (message[at] & 127) << shift, shift + 7, at + 1
    if at >= len(message):
        raise ValueError("its footer is cut off")
    return value | message[at] << shift, at + 1
