"""Where a data file, an index file or a blob sidecar keeps the checksums of its blocks.

    page buffers, other global buffers, blobs          the first section, from byte 0; all of a 0.1 file but its footer
    u64 for each block of the first section            the second section, zeros up to a multiple of 64
    schema, column metadata and offset tables          the third section; empty in a 0.1 file
    u64 for each block of the second, then the third section
    trailer: u64 digest | u64 end of the first section | u64 end of the second | u64 end of the third | 8 bytes magic
    footer of the file's version

Each section is cut into blocks of 64 KiB from its start, and the last block of a section may be shorter. A checksum is
the xxh3_64 of a block. The trailer's digest covers the checksums before the trailer, the rest of the trailer, and the
footer. So a reader that has the last bytes of a file verifies them first, then the metadata, then the checksums of
pages. Each step needs only bytes that the step before has verified.

The trailer stands at a fixed distance from the file's end. So one flipped bit cannot hide it, except a bit of the
magic: then the other bytes are intact, and the file is merely unverified. The magic names the algorithm and the size of
blocks; a file with another magic is unverified too. Other readers find everything by the positions in the footer, and
ignore bytes that no position refers to.

A blob sidecar has its blobs in the first section, no metadata and no footer. Descriptors say where its blobs are, and
other readers ignore the bytes after them. A sidecar without checksums ends with bytes of a user, which may be a copy of
a sidecar with checksums. A trailer whose digest is right at a position where it was not written is such a copy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from lance_ops.core.errors import ChecksumMismatch
from lance_ops.core.file_names import is_blob_sidecar
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.store import merge_touching
from lance_ops.wire import digest_of

__all__ = [
    "BLOCK_BYTES",
    "BlockTable",
    "Blocks",
    "decode_checksums",
    "encode_checksums",
    "encode_trailer",
    "find_table",
]

BLOCK_BYTES = 1 << 16
"""Blocks of this size do not slow a scan, and a random read fetches no more than most disks read ahead."""

_MAGIC = b"\xf1LOblk3\x01"
_DIGEST = struct.Struct("<Q")
_ENDS = struct.Struct("<QQQ8s")
_TRAILER_BYTES = _DIGEST.size + _ENDS.size

_FOOTERS_BYTES = (40, 16)
"""The sizes of the footers of 2.x files and of 0.1 files."""

_NO_FOOTER = (0,)
"""The size of the footer of blob sidecars, which have none."""

_ENTRY = np.dtype("<u8")


@dataclass(frozen=True, eq=False)
class Blocks:
    """Some blocks of a file, ascending: their numbers, counted through all sections, and their bytes."""

    numbers: Int64Array
    starts: Int64Array
    stops: Int64Array

    def __len__(self) -> int:
        return len(self.numbers)

    def at(self, wanted: BoolArray) -> Blocks:
        """Return the blocks where `wanted` is true."""
        return Blocks(self.numbers[wanted], self.starts[wanted], self.stops[wanted])


@dataclass(frozen=True, eq=False)
class BlockTable:
    """Where the three sections of a file end, and the checksums of the blocks of the second and the third section."""

    section_ends: tuple[int, int, int]
    checksums: Uint64Array

    @property
    def page_checksums_extent(self) -> tuple[int, int]:
        """Where the second section holds the checksums of the first: (start, stop) in bytes."""
        start = self.section_ends[0]
        return start, start + _ENTRY.itemsize * self.num_page_blocks

    @property
    def num_page_blocks(self) -> int:
        """The number of blocks of the first section."""
        return _num_blocks(self.section_ends[0])

    @property
    def num_blocks(self) -> int:
        """The number of blocks of all sections."""
        return self.num_page_blocks + len(self.checksums)

    def blocks_of(self, starts: Int64Array, stops: Int64Array) -> Blocks:
        """Return the blocks that hold any byte of these ranges."""
        parts = []
        first_number = section_start = 0
        lowest, highest = (int(starts.min()), int(stops.max())) if len(starts) else (0, 0)
        for section_end in self.section_ends:
            if lowest < section_end and highest > section_start:
                begins = np.maximum(starts, section_start) - section_start
                ends = np.minimum(stops, section_end) - section_start
                touched = _touched(begins, ends)
                if len(touched):
                    at = touched * BLOCK_BYTES + section_start
                    parts.append(Blocks(touched + first_number, at, np.minimum(at + BLOCK_BYTES, section_end)))
            first_number += _num_blocks(section_end - section_start)
            section_start = section_end
        if len(parts) == 1:
            return parts[0]
        fields = zip(*((part.numbers, part.starts, part.stops) for part in parts), strict=True)
        return Blocks(*map(np.concatenate, fields)) if parts else Blocks(_NONE, _NONE, _NONE)


def decode_checksums(data: bytes) -> Uint64Array:
    """Return the checksums of the bytes that `encode_checksums` made."""
    return np.frombuffer(data, _ENTRY)


def encode_checksums(checksums: list[int]) -> bytes:
    """Return the bytes of checksums: 8 for each, little-endian."""
    return np.array(checksums, _ENTRY).tobytes()


def encode_trailer(section_ends: tuple[int, int, int], checksums: bytes, footer: bytes) -> bytes:
    """Return the trailer that follows the checksums of the second and third section and precedes the footer."""
    ends = _ENDS.pack(*section_ends, _MAGIC)
    return _DIGEST.pack(digest_of(checksums, ends, footer)) + ends


def find_table(tail: bytes, size_bytes: int, path: str, read: Callable[[int, int], bytes]) -> BlockTable | None:
    """Return the table of a file whose last bytes are `tail`; None for a file without checksums.

    `read` reads bytes before the tail, which only a file with very much metadata needs. Raises `ChecksumMismatch` if
    the trailer or what its digest covers has changed.
    """
    for footer_bytes in _NO_FOOTER if is_blob_sidecar(path) else _FOOTERS_BYTES:
        at = len(tail) - footer_bytes - _TRAILER_BYTES
        if at >= 0 and tail.startswith(_MAGIC, at + _TRAILER_BYTES - len(_MAGIC)):
            return _decode_trailer(tail, at, size_bytes, path, read)
    return None


def _decode_trailer(
    tail: bytes, at: int, size_bytes: int, path: str, read: Callable[[int, int], bytes]
) -> BlockTable | None:
    """Return the table whose trailer begins at `tail[at]`; None if that is the end of a blob."""
    start = size_bytes - len(tail) + at
    (stated,) = _DIGEST.unpack_from(tail, at)
    pages, table, metadata, _ = _ENDS.unpack_from(tail, at + _DIGEST.size)
    if not pages <= table <= metadata <= start:
        raise ChecksumMismatch(path, start, size_bytes)
    table_bytes = _ENTRY.itemsize * (_num_blocks(table - pages) + _num_blocks(metadata - table))
    first = start - table_bytes
    if first < metadata or table - pages < _ENTRY.itemsize * _num_blocks(pages):
        raise ChecksumMismatch(path, start, size_bytes)
    checksums = tail[at - table_bytes : at] if at >= table_bytes else read(first, start)
    if stated != digest_of(checksums, tail[at + _DIGEST.size :]):
        raise ChecksumMismatch(path, first, size_bytes)
    if first != metadata:
        if is_blob_sidecar(path):
            return None
        raise ChecksumMismatch(path, start, size_bytes)
    return BlockTable((pages, table, metadata), decode_checksums(checksums))


def _num_blocks(size_bytes: int) -> int:
    return -(-size_bytes // BLOCK_BYTES)


def _touched(starts: Int64Array, stops: Int64Array) -> Int64Array:
    """Return the numbers of the blocks that ranges of one section touch; empty and reversed ranges touch none."""
    wanted = starts < stops
    first, last = starts[wanted] // BLOCK_BYTES, (stops[wanted] - 1) // BLOCK_BYTES
    if (first == last).all():
        return first if len(first) < 2 else np.unique(first)
    first, stop = merge_touching(first, last + 1)
    lengths = stop - first
    ends = np.cumsum(lengths)
    numbers: Int64Array = np.repeat(first - (ends - lengths), lengths) + np.arange(int(ends[-1]))
    return numbers


_NONE = np.zeros(0, np.int64)
