"""Measure how much of a file is in the page cache, and evict it."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

__all__ = ["forget", "resident_bytes"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_MINCORE = _LIBC.mincore
_MINCORE.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def forget(path: Path) -> None:
    """Evict an unmapped file from the page cache, so that the next read waits for the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def resident_bytes(path: Path) -> int:
    """Return how much of a file is in memory, in whole pages."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        pages = ctypes.create_string_buffer(-(-len(mapped) // mmap.PAGESIZE))
        first = ctypes.c_char.from_buffer(mapped)
        try:
            assert _MINCORE(ctypes.addressof(first), len(mapped), pages) == 0
        finally:
            del first
    return sum(page & 1 for page in pages.raw) * mmap.PAGESIZE
