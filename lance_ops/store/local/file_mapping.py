"""A file mapped into memory, of which the disk is asked for what somebody says he will look at.

Left to itself, a system that meets a page which is not in memory reads its neighbours as well, as far as the disk's
read-ahead goes: megabytes, for one value of a row. Arrow's own maps ask for the whole file at once.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import Int64Array
from lance_ops.store.contract import View
from lance_ops.store.ranges import merge_touching

__all__ = ["FileMapping"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_MMAP, _MUNMAP, _MADVISE, _MINCORE = _LIBC.mmap, _LIBC.munmap, _LIBC.madvise, _LIBC.mincore
_MMAP.restype = ctypes.c_void_p
_MMAP.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_MUNMAP.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_MADVISE.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_MINCORE.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
_FAILED = ctypes.c_void_p(-1).value

# What to ask for at once costs no more than to look whether some of it is there.
_FEW_RANGES, _FEW_BYTES = 4, 64 << 10


class FileMapping(View):
    """The bytes of an open file, read-only; `buffer` keeps them, and parts of it do, but no descriptor."""

    __slots__ = ()

    def __init__(self, descriptor: int, size: int) -> None:
        """Map so many bytes of a file, at least one; raise `OSError`."""
        pages = _Pages(descriptor, size)
        super().__init__(pa.foreign_buffer(pages.address, size, base=pages))

    def whole(self) -> pa.Buffer:
        self.will_need(np.zeros(1, np.int64), np.array([self.buffer.size]))
        return self.buffer

    def will_need(self, starts: Int64Array, stops: Int64Array) -> None:
        """Begin to read byte ranges from the disk; do nothing if some of many, which stand for all, are in memory."""
        is_much = len(starts) > _FEW_RANGES or sum(stops.tolist()) - sum(starts.tolist()) > _FEW_BYTES
        if is_much:
            if self._are_there(starts, stops):
                return
            starts, stops = merge_touching(starts // mmap.PAGESIZE * mmap.PAGESIZE, stops)
        address, size = self.buffer.address, self.buffer.size
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            if 0 <= start < stop <= size:
                first = start - start % mmap.PAGESIZE
                _MADVISE(address + first, stop - first, mmap.MADV_WILLNEED)

    def _are_there(self, starts: Int64Array, stops: Int64Array) -> bool:
        """Return whether three of the ranges are in memory where they begin and end."""
        bounds = (int(bound) for at in (0, len(starts) // 2, -1) for bound in (starts[at], stops[at] - 1))
        pages = {max(bound, 0) // mmap.PAGESIZE for bound in bounds}
        answer = ctypes.create_string_buffer(1)
        return not any(
            _MINCORE(self.buffer.address + page * mmap.PAGESIZE, 1, answer) == 0 and not answer.raw[0] & 1
            for page in pages
        )


class _Pages:
    """What is unmapped when nobody has a buffer of it any more."""

    __slots__ = ("_size", "address")

    def __init__(self, descriptor: int, size: int) -> None:
        address = _MMAP(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address == _FAILED:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self.address: int = address
        self._size = size

    def __del__(self, munmap: Callable[..., int] = _MUNMAP) -> None:
        if hasattr(self, "_size"):
            munmap(self.address, self._size)
