"""Sync several open files at the same time: one commit of a file system's journal serves all that wait for it.

Who begins it may go on with other work, and waits when that is done.

Linux takes them in one call of its asynchronous I/O and syncs them in threads of its own, which costs a third of what
threads here do. Elsewhere, and where a sandbox forbids that, there are threads here.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from functools import partial

from lance_ops.store.per_process import PER_PROCESS

__all__ = ["MOST_AT_ONCE", "begin_fsync"]

MOST_AT_ONCE = 64
"""How many files and directories `begin_fsync` takes."""

_NOTHING_TO_SYNC = (errno.EINVAL, errno.ENOTSUP)  # what some file systems say of a directory
_NUMBERS = {"x86_64": (206, 209, 208), "aarch64": (0, 2, 4)}
"""Of io_setup, io_submit and io_getevents, which the C library does not wrap."""
_REQUEST = struct.Struct("<QIiHhIQQqQII")  # iocb of linux/aio_abi.h
_DESCRIPTOR_AT = 20  # in a request
_EVENT, _RESULT_AT = struct.Struct("<QQqq"), 16  # io_event: whose, which request, its result, 0
_FSYNC = 2  # IOCB_CMD_FSYNC


def begin_fsync(descriptors: Sequence[int]) -> Callable[[], None]:
    """Begin to sync files and directories; return what is to be called before they are closed.

    That waits until all have come to an end, and raises `OSError` if one could not be synced.
    """
    taken, wait_for_kernel = _KERNEL.begin(descriptors)
    if taken == len(descriptors):
        return wait_for_kernel
    under_way = [PER_PROCESS.pool().submit(_fsync, descriptor) for descriptor in descriptors[taken:]]

    def finish() -> None:
        wait(under_way)
        wait_for_kernel()
        for done in under_way:
            done.result()

    return finish


def _fsync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOTHING_TO_SYNC:
            raise


class _Context:
    """What the kernel takes requests by and answers in, for one thread at a time."""

    def __init__(self, number: ctypes.c_ulong) -> None:
        self.number = number
        requests = ctypes.create_string_buffer(
            _REQUEST.pack(0, 0, 0, _FSYNC, 0, 0, 0, 0, 0, 0, 0, 0) * MOST_AT_ONCE, MOST_AT_ONCE * _REQUEST.size
        )
        first = ctypes.addressof(requests)
        self.places = (ctypes.c_void_p * MOST_AT_ONCE)(*range(first, first + len(requests), _REQUEST.size))
        self.events = ctypes.create_string_buffer(MOST_AT_ONCE * _EVENT.size)
        self._descriptors = memoryview(requests).cast("B").cast("I")[_DESCRIPTOR_AT // 4 :: _REQUEST.size // 4]
        self._results = memoryview(self.events).cast("B").cast("q")[_RESULT_AT // 8 :: _EVENT.size // 8]

    def ask_for(self, descriptors: Sequence[int]) -> None:
        """Let the first requests be for these."""
        for at, descriptor in enumerate(descriptors):
            self._descriptors[at] = descriptor

    def results(self, ended: int) -> list[int]:
        """Return the results of the first so many events."""
        return self._results[:ended].tolist()


class _Kernel:
    """The asynchronous I/O of Linux, as far as it is there. A forked child has none of its parent's contexts."""

    def __init__(self) -> None:
        is_known = sys.platform == "linux" and sys.maxsize > 1 << 32 and sys.byteorder == "little"
        numbers = _NUMBERS.get(platform.machine()) if is_known else None
        self._setup, self._submit, self._get_events = numbers or (0, 0, 0)
        self._call: Callable[..., int] | None = ctypes.CDLL(None, use_errno=True).syscall if numbers else None
        self.reset()

    def reset(self) -> None:
        """Forget every context."""
        self._idle: list[_Context] = []

    def begin(self, descriptors: Sequence[int]) -> tuple[int, Callable[[], None]]:
        """Begin to sync as many of these, from the first on, as the kernel takes; return how many and what waits."""
        context = self._context()
        if context is None or self._call is None:
            return 0, lambda: None
        context.ask_for(descriptors)
        taken = max(self._call(self._submit, context.number, len(descriptors), context.places), 0)
        return taken, partial(self._finish, context, taken)

    def _finish(self, context: _Context, taken: int) -> None:
        failures = [-result for result in self._results(context, taken) if result < 0]
        self._idle.append(context)
        for code in failures:
            if code not in _NOTHING_TO_SYNC:
                raise OSError(code, os.strerror(code))

    def _results(self, context: _Context, wanted: int) -> list[int]:
        assert self._call is not None
        results: list[int] = []
        while len(results) < wanted:
            missing = wanted - len(results)
            ended = self._call(self._get_events, context.number, missing, missing, context.events, None)
            if ended < 0 and ctypes.get_errno() != errno.EINTR:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            results += context.results(max(ended, 0))
        return results

    def _context(self) -> _Context | None:
        try:
            return self._idle.pop()
        except IndexError:
            number = ctypes.c_ulong(0)
        if self._call is not None and self._call(self._setup, MOST_AT_ONCE, ctypes.byref(number)) == 0:
            return _Context(number)
        self._call = None  # forbidden here, or the system has none left
        return None


_KERNEL = _Kernel()
os.register_at_fork(after_in_child=_KERNEL.reset)
