"""Take a file's room on the disk at once, before its bytes are written, instead of page by page while they are."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache

__all__ = ["reserve"]

_KEEP_SIZE = 1  # linux/falloc.h


def reserve(descriptor: int, start: int, size: int) -> None:
    """Reserve room for bytes of an open file, whose length stays; where that cannot be done, nothing happens.

    Raises `OSError` if the disk is full.
    """
    call = _fallocate()
    # Not `os.posix_fallocate`: where a file system cannot reserve, the C library would write to every block instead.
    if call is not None and call(descriptor, _KEEP_SIZE, start, size) and ctypes.get_errno() == errno.ENOSPC:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        function.restype = ctypes.c_int
    return function
