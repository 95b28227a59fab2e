"""Locks by key: all callers get the same lock for a key, and the lock exists while a caller refers to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakValueDictionary

__all__ = ["KeyedLock", "KeyedLocks"]


class KeyedLock:
    """A wrapper around a lock, because a weak dictionary cannot refer to the lock itself."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock


class KeyedLocks:
    """Gives all callers the same lock for a key; `make` creates the locks. A reference keeps a lock alive."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.reset()

    def of(self, key: Hashable) -> KeyedLock:
        with self._guard:
            return self._locks.setdefault(key, KeyedLock(self._make()))

    def reset(self) -> None:
        """Forget all locks. A forked child must do this: the threads that hold locks do not exist in it."""
        self._guard = threading.Lock()
        self._locks: WeakValueDictionary[Hashable, KeyedLock] = WeakValueDictionary()
