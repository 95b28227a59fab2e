"""Decode short deletion files that differ in their offsets alone, without parsing each of them as an Arrow file.

    head | offsets: u32 each | middle, with the magic of the digest block | u64 digest | tail

Files of equally many offsets by this library have the same head, middle and tail. The first such file is parsed, and
its pattern is kept in the process. Another file is decoded by the pattern only if all its bytes but the offsets and the
digest are those of that file, and its digest is right.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from pyroaring import BitMap

from lance_ops.table.fragments.deletion_file import DeletionFile, DeletionFileType, decode_deletion_vector
from lance_ops.table.fragments.ipc_batches import ipc_footer_position, read_batches
from lance_ops.wire import DIGEST_BLOCK_BYTES, digest_of, has_digest_block

__all__ = ["decode_deletion_vectors"]

_DIGEST_BYTES = 8
_OFFSET_BYTES = 4


class _Pattern(NamedTuple):
    """What files of one size and one number of offsets have in common."""

    num_offsets: int
    head: bytes
    middle: bytes
    tail: bytes


_PATTERNS: dict[int, _Pattern] = {}
"""The last pattern of each number of offsets, below `_MAX_PATTERNS`. A pattern is no longer than a short file."""

_MAX_PATTERNS = 1000


def decode_deletion_vectors(
    files: Sequence[DeletionFile], data: Sequence[bytes], physical_rows: Sequence[int], paths: Sequence[str]
) -> list[BitMap]:
    """Return the deleted offsets of several fragments; raises as `decode_deletion_vector` does."""
    vectors = []
    for file, each, num_rows, path in zip(files, data, physical_rows, paths, strict=True):
        pattern = _PATTERNS.get(file.num_deleted_rows)
        vector = None if pattern is None else _decode_as(pattern, file, each, num_rows)
        if vector is None:
            vector = decode_deletion_vector(file, each, num_rows, path)
            found = _pattern_of(file, each)
            if found is not None and found.num_offsets < _MAX_PATTERNS:
                _PATTERNS[found.num_offsets] = found
        vectors.append(vector)
    return vectors


def _decode_as(pattern: _Pattern, file: DeletionFile, data: bytes, physical_rows: int) -> BitMap | None:
    """Return the offsets of a file that has the pattern; None for any other file, and where a check fails."""
    count, head, middle, tail = pattern
    digest_at = len(data) - len(tail) - _DIGEST_BYTES
    has_pattern = data.startswith(head) and data.endswith(middle, 0, digest_at) and data.endswith(tail)
    if not has_pattern or file.file_type is not DeletionFileType.ARROW_ARRAY or file.num_deleted_rows != count:
        return None
    stated = int.from_bytes(data[digest_at : digest_at + _DIGEST_BYTES], "little")
    block_at = digest_at + _DIGEST_BYTES - DIGEST_BLOCK_BYTES
    if stated != digest_of(data[:block_at], tail):
        return None
    offsets = array("I", data[len(head) : len(head) + _OFFSET_BYTES * count])
    vector = BitMap(offsets)
    is_ascending = vector.to_array() == offsets
    return vector if is_ascending and not (physical_rows and offsets[-1] >= physical_rows) else None


def _pattern_of(file: DeletionFile, data: bytes) -> _Pattern | None:
    """Return the pattern of a file that was decoded; None if its offsets do not stand in it as they are."""
    view = memoryview(data)
    block_at = ipc_footer_position(view) - DIGEST_BLOCK_BYTES
    if file.file_type is not DeletionFileType.ARROW_ARRAY or not has_digest_block(view, block_at):
        return None
    buffer = pa.py_buffer(data)
    column = read_batches(buffer).column(0)
    if column.num_chunks != 1 or column.type != pa.uint32() or not len(column):
        return None
    (chunk,) = column.chunks
    start = chunk.buffers()[1].address - buffer.address + _OFFSET_BYTES * chunk.offset
    stop = start + _OFFSET_BYTES * len(chunk)
    if not 0 < start < stop <= block_at:  # the offsets are compressed, so Arrow has copied them
        return None
    digest_at = block_at + DIGEST_BLOCK_BYTES - _DIGEST_BYTES
    return _Pattern(len(chunk), data[:start], data[stop:digest_at], data[digest_at + _DIGEST_BYTES :])
