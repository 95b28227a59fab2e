"""Start writing a file's pages to the disk without waiting, so that the fsync at the end finds little left to do."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache

__all__ = ["start_writeback"]

_SYNC_FILE_RANGE_WRITE = 2  # linux/fs.h


def start_writeback(descriptor: int, start: int, size: int) -> None:
    """Ask for bytes of an open file to be written soon. A hint: where it cannot be given, nothing happens."""
    call = _sync_file_range()
    if call is not None:
        call(descriptor, start, size, _SYNC_FILE_RANGE_WRITE)


@cache
def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
        function.restype = ctypes.c_int
    return function
