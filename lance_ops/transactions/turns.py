"""Commits of one process to one table take turns.

Only one commit can be the next version. Threads that try at once make each other lose, and each loss is work done for
nothing; other processes are met by trying again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

__all__ = ["turn"]


class _Turns:
    """Whose turn it is, by table. A forked child begins anew: a thread that holds one here does not exist there."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._guard = threading.Lock()
        self._locks: WeakValueDictionary[str, _Turn] = WeakValueDictionary()

    def of(self, table: str) -> _Turn:
        with self._guard:
            return self._locks.setdefault(table, _Turn())


class _Turn:
    """A lock that a weak dictionary can hold; a thread that has it may take it again."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


_TURNS = _Turns()
os.register_at_fork(after_in_child=_TURNS.reset)


@contextmanager
def turn(table: str, timeout_seconds: float) -> Iterator[bool]:
    """Wait for this thread's turn with a table, by its URI; the block is told whether it came in time."""
    waited_for = _TURNS.of(table)
    has_turn = waited_for.lock.acquire(timeout=max(0.0, min(timeout_seconds, threading.TIMEOUT_MAX)))
    try:
        yield has_turn
    finally:
        if has_turn:
            waited_for.lock.release()
