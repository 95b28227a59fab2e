"""Let the threads of one process commit to one table one after the other.

Only one commit can make the next version. Threads that try at the same time make each other lose, and each loss wastes
the work of one attempt. Against other processes a commit retries.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lance_ops.core.threads import KeyedLocks

__all__ = ["commit_lock"]


_LOCKS = KeyedLocks(threading.RLock)  # a thread that holds a lock may take it again
os.register_at_fork(after_in_child=_LOCKS.reset)


@contextmanager
def commit_lock(table_uri: str, timeout_seconds: float) -> Iterator[bool]:
    """Hold the table's lock in the block, which receives whether the lock was acquired in time."""
    keyed = _LOCKS.of(table_uri)
    is_acquired = keyed.lock.acquire(timeout=max(0.0, min(timeout_seconds, threading.TIMEOUT_MAX)))
    try:
        yield is_acquired
    finally:
        if is_acquired:
            keyed.lock.release()
