"""Count what stores read and write: for a handle, for one scan, and for the whole process.

A store has counters, which its children share. A reader that wants figures of its own runs in a `counted_in` block. The
threads that `map_ordered` starts count there too, because they run in the context of their caller.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lance_ops.core.records import dataclass

__all__ = ["PROCESS_COUNTERS", "IOStats", "IoCounters", "bytes_read_counter", "counted_in", "iops_counter"]


@dataclass(frozen=True, slots=True)
class IOStats:
    """Operations and bytes, under the reference's names. An operation is one request, or one range of a mapped file."""

    read_iops: int = 0
    read_bytes: int = 0
    write_iops: int = 0
    written_bytes: int = 0


class IoCounters:
    """Operations and bytes counted so far; any thread may count. An unpickled copy begins at zero."""

    __slots__ = ("_read_bytes", "_read_iops", "_write_iops", "_written_bytes")

    def __init__(self) -> None:
        self._read_iops = self._read_bytes = self._write_iops = self._written_bytes = 0

    def add_reads(self, operations: int, num_bytes: int) -> None:
        """Count reads here, for the process, and in the `counted_in` block of the caller."""
        block = _BLOCK.get()
        with _GUARD.lock:
            for counters in (self, PROCESS_COUNTERS) if block is None else (self, PROCESS_COUNTERS, block):
                counters._read_iops += operations
                counters._read_bytes += num_bytes

    def add_write(self, num_bytes: int) -> None:
        """Count one write as `add_reads` counts reads."""
        block = _BLOCK.get()
        with _GUARD.lock:
            for counters in (self, PROCESS_COUNTERS) if block is None else (self, PROCESS_COUNTERS, block):
                counters._write_iops += 1
                counters._written_bytes += num_bytes

    def stats(self) -> IOStats:
        """Return what was counted since the last `take`."""
        with _GUARD.lock:
            return self._stats()

    def take(self) -> IOStats:
        """Return what was counted since the last call, and begin at zero."""
        with _GUARD.lock:
            found = self._stats()
            self.__init__()  # type: ignore[misc]
            return found

    def _stats(self) -> IOStats:
        return IOStats(self._read_iops, self._read_bytes, self._write_iops, self._written_bytes)

    def __reduce__(self) -> tuple[type[IoCounters], tuple[()]]:
        return IoCounters, ()


def iops_counter() -> int:
    """Return how many reads all stores of this process have made."""
    return PROCESS_COUNTERS.stats().read_iops


def bytes_read_counter() -> int:
    """Return how many bytes all stores of this process have read."""
    return PROCESS_COUNTERS.stats().read_bytes


@contextmanager
def counted_in(counters: IoCounters) -> Iterator[None]:
    """Count all I/O of the block in `counters` too, instead of in those of a block around it."""
    token = _BLOCK.set(counters)
    try:
        yield
    finally:
        _BLOCK.reset(token)


class _Guard:
    """The lock of all counters: it is held for a few additions."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Take a new lock: in a forked child, a thread that does not exist there may hold the old one."""
        self.lock = threading.Lock()


_GUARD = _Guard()
_BLOCK: ContextVar[IoCounters | None] = ContextVar("_BLOCK", default=None)
PROCESS_COUNTERS = IoCounters()
"""All I/O of the process."""
os.register_at_fork(after_in_child=_GUARD.reset)
