"""A cache that is bounded by the memory of its entries, and drops the least recently used ones.

There is no lock, because a forked child could inherit it locked. Each step is atomic in the interpreter. Two threads
that miss the same entry both load it, and the last one to finish is cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

__all__ = ["BoundedCache"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Entries that take at most about `capacity_bytes`; the `least` ones that were used last stay, however large."""

    def __init__(self, capacity_bytes: int, memory_bytes_of: Callable[[V], int], least: int = 0) -> None:
        self._capacity_bytes = capacity_bytes
        self._memory_bytes_of = memory_bytes_of
        self._least = least
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._memory_bytes: dict[K, int] = {}

    def get(self, key: K, load: Callable[[], V]) -> V:
        """Return the cached entry, or load it and cache it."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = load()
            self._memory_bytes[key] = self._memory_bytes_of(entry)
            self._evict()
        with suppress(KeyError):  # it was evicted
            self._entries.move_to_end(key)
        return entry

    @property
    def memory_bytes(self) -> int:
        """About how many bytes of memory the entries take."""
        return sum(list(self._memory_bytes.values()))

    def _evict(self) -> None:
        memory_bytes = self.memory_bytes
        with suppress(KeyError):
            while memory_bytes > self._capacity_bytes and len(self._entries) > self._least:
                key, _ = self._entries.popitem(last=False)
                memory_bytes -= self._memory_bytes.pop(key)
