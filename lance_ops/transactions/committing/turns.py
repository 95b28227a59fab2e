"""Commits of one process to one table take turns.

Only one commit can be the next version. Threads that try at once make each other lose, and each loss is work done for
nothing; other processes are met by trying again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lance_ops.core.keyed_locks import KeyedLocks

__all__ = ["turn"]


_TURNS = KeyedLocks(threading.RLock)  # a thread that has one may take it again
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
