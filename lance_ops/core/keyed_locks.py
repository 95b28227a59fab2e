"""Locks by key, each for as long as somebody has it or waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakValueDictionary

__all__ = ["KeyedLock", "KeyedLocks"]


class KeyedLock:
    """A lock that a weak dictionary can hold."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock


class KeyedLocks:
    """Gives everybody who asks with the same key the same lock, made by `make`. Who was given one keeps it alive."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.reset()

    def of(self, key: Hashable) -> KeyedLock:
        with self._guard:
            return self._locks.setdefault(key, KeyedLock(self._make()))

    def reset(self) -> None:
        """Begin anew, as a forked child must: a thread that holds one here does not exist there."""
        self._guard = threading.Lock()
        self._locks: WeakValueDictionary[Hashable, KeyedLock] = WeakValueDictionary()
