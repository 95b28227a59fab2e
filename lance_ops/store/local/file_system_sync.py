"""Sync many files of one file system by one call (Linux's `syncfs`), which writes all of them and waits once.

The call also writes what other processes have left unwritten there. So it serves only many files, whose own syncs would
take long. Its answer covers the whole file system, so each file is asked afterwards for an error in writing its bytes
(`sync_file_range`), as a sync of this file would report it. Only ext2 to ext4 and XFS are taken: there the call commits
the journal and flushes the disk's cache.

Gain: 10,000 files of 4 KB take 0.31 to 0.40 of the time (ADR 19). Switch off with `LANCE_OPS_DISABLE=syncfs`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from lance_ops.core.tricks import Trick
from lance_ops.store.local.directory_watch import file_system_type

__all__ = ["sync_together"]

_TAKEN = frozenset({0xEF53, 0x58465342})  # linux/magic.h: ext2 to ext4, XFS
_WAIT_BEFORE = 1  # SYNC_FILE_RANGE_WAIT_BEFORE of linux/fs.h


def sync_together(paths: Sequence[str]) -> bool:
    """Sync files and directories, at least one, and return True; return False where that is not possible.

    Raises `OSError` if one of them could not be synced. One on another file system than the first is synced by itself.
    """
    if not Trick.SYNCFS.is_on() or _libc() is None:
        return False
    device = _sync_file_system(paths[0])
    if device is None:
        return False
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if os.fstat(descriptor).st_dev != device:
                os.fsync(descriptor)
            elif _libc().sync_file_range(descriptor, 0, 0, _WAIT_BEFORE) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
        finally:
            os.close(descriptor)
    return True


def _sync_file_system(path: str) -> int | None:
    """Sync the file system of a path and return its device; None if it is not taken, or could not be synced."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if file_system_type(descriptor) not in _TAKEN or _libc().syncfs(descriptor) != 0:
            return None
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


@cache
def _libc() -> Any:
    """Return the C library, or None where it lacks the calls."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    if not (hasattr(libc, "syncfs") and hasattr(libc, "sync_file_range")):
        return None
    libc.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return libc
