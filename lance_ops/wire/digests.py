"""Digests of bytes, and the block that carries the digest of a small file inside that file.

    8 bytes  magic, which names the algorithm
    u64      xxh3_64 of all bytes of the file but these sixteen

A manifest and a deletion file carry such a block where other readers of the format skip it. A file without a block is
unverified, never corrupt: other writers make no blocks, and a rewrite by them drops ours.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

import pyarrow as pa
import xxhash

from lance_ops.core.errors import ChecksumMismatch
from lance_ops.core.records import dataclass

__all__ = [
    "DIGEST_BLOCK_BYTES",
    "ChecksumReport",
    "check_digest_block",
    "digest_block",
    "digest_block_report",
    "digest_of",
    "digest_of_buffer",
    "digests_of_parts",
    "has_digest_block",
    "start_digest",
]

BytesLike: TypeAlias = bytes | bytearray | memoryview | pa.Buffer

_MAGIC = b"\xf1LOxxh3\x01"
_BLOCK = struct.Struct("<8sQ")
DIGEST_BLOCK_BYTES = _BLOCK.size

# The algorithm of all checksums. Another one needs new magics, here and in `file/checksums/block_table.py`.
digest_of_buffer = xxhash.xxh3_64_intdigest
"""Returns the digest of one buffer."""
start_digest = xxhash.xxh3_64
"""Starts a digest of bytes that come in parts: call `update` for each, then `intdigest`."""


@dataclass(frozen=True)
class ChecksumReport:
    """What the checksums of one file say about its bytes; a file without checksums is unverified, not damaged."""

    has_checksums: bool
    num_blocks: int = 0
    """The number of blocks that were compared with their checksums."""
    damaged: tuple[tuple[int, int], ...] = ()
    """The byte ranges, each (start, stop), whose bytes do not have their checksum; neighbours are joined."""


def digest_block(*parts: BytesLike) -> bytes:
    """Return the block for a file whose other bytes are these parts, end to end."""
    return _BLOCK.pack(_MAGIC, digest_of(*parts))


def has_digest_block(data: memoryview, position: int) -> bool:
    """Return whether a block begins at a position, which may lie outside the data."""
    # Arrow's buffers are views of signed bytes, which never equal bytes above 127.
    return 0 <= position <= len(data) - _BLOCK.size and bytes(data[position : position + len(_MAGIC)]) == _MAGIC


def check_digest_block(data: memoryview, position: int, path: str) -> bool:
    """Return whether a block begins at a position; raise `ChecksumMismatch` unless the other bytes have its digest."""
    if not has_digest_block(data, position):
        return False
    _, stated = _BLOCK.unpack_from(data, position)
    if stated != digest_of(data[:position], data[position + _BLOCK.size :]):
        raise ChecksumMismatch(path, 0, len(data))
    return True


def digest_block_report(data: memoryview, position: int) -> ChecksumReport:
    """Return what the block at a position says about all bytes of a file."""
    try:
        return ChecksumReport(True, 1) if check_digest_block(data, position, "") else ChecksumReport(False)
    except ChecksumMismatch:
        return ChecksumReport(True, 1, ((0, len(data)),))


def digests_of_parts(data: memoryview, part_bytes: int) -> list[int]:
    """Return the xxh3_64 of each part of `part_bytes`; the last part may be shorter. Empty data has no part."""
    return [digest_of_buffer(data[start : start + part_bytes]) for start in range(0, len(data), part_bytes)]


def digest_of(*parts: BytesLike) -> int:
    """Return the xxh3_64 of parts laid end to end."""
    state = start_digest()
    for part in parts:
        state.update(part)
    return state.intdigest()
