"""A cache that is bounded by the memory of its entries, and drops the least recently used ones.

There is no lock, because a forked child could inherit it locked. Each step on the entries is atomic in the interpreter.
Two threads that miss the same entry both load it, and the last one to finish is cached. The total of their memory is
kept as a number, which threads may get wrong together: once as many entries have come as there are, it is counted anew.
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
        self._total_bytes = 0
        self._added_since_count = 0

    def get(self, key: K, load: Callable[[], V]) -> V:
        """Return the cached entry, or load it and cache it."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = load()
            self._add_bytes(key, self._memory_bytes_of(entry))
            self._evict()
        with suppress(KeyError):  # it was evicted
            self._entries.move_to_end(key)
        return entry

    @property
    def memory_bytes(self) -> int:
        """About how many bytes of memory the entries take."""
        return sum(list(self._memory_bytes.values()))

    def _add_bytes(self, key: K, memory_bytes: int) -> None:
        before = self._memory_bytes.get(key, 0)
        self._memory_bytes[key] = memory_bytes
        self._total_bytes += memory_bytes - before
        self._added_since_count += 1
        if self._added_since_count > len(self._memory_bytes):
            self._total_bytes = self.memory_bytes
            self._added_since_count = 0

    def _evict(self) -> None:
        with suppress(KeyError):
            while self._total_bytes > self._capacity_bytes and len(self._entries) > self._least:
                key, _ = self._entries.popitem(last=False)
                self._total_bytes -= self._memory_bytes.pop(key)
