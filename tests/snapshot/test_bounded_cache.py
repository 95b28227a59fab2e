"""The cache bounded by memory: what it drops, and that a miss costs the same however many entries there are."""

from __future__ import annotations

from functools import partial

import pytest

from lance_ops.snapshot.caches.bounded_cache import BoundedCache


def _get(cache: BoundedCache[int, int], *numbers: int) -> list[int]:
    """Get entries that take as many bytes as their number says, and return those that were loaded."""
    loaded: list[int] = []

    def load(number: int) -> int:
        loaded.append(number)
        return number

    for number in numbers:
        assert cache.get(number, partial(load, number)) == number
    return loaded


def test_the_entries_used_longest_ago_are_dropped_when_all_take_too_much() -> None:
    cache = BoundedCache[int, int](10, lambda size: size)
    assert _get(cache, 1, 2, 3, 4) == [1, 2, 3, 4] and cache.memory_bytes == 10
    assert _get(cache, 1, 5) == [5] and cache.memory_bytes == 10, "2 and 3 were used before 1"
    assert _get(cache, 4, 1, 5) == []
    assert _get(cache, 2) == [2] and _get(cache, 1, 5) == []


def test_an_entry_that_is_too_large_stays_only_among_the_least() -> None:
    assert _get(BoundedCache(10, lambda size: size), 20, 20) == [20, 20]
    assert _get(BoundedCache(10, lambda size: size, least=1), 20, 20) == [20]


@pytest.mark.parametrize("capacity", [500, 1_000_000], ids=["full", "not full"])
def test_a_miss_does_not_count_all_entries(capacity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = list[int]()

    def counting(cache: BoundedCache[int, int]) -> int:
        counted.append(len(cache._memory_bytes))
        return sum(cache._memory_bytes.values())

    monkeypatch.setattr(BoundedCache, "memory_bytes", property(counting))
    cache = BoundedCache[int, int](capacity, lambda _: 1)
    misses = 4000
    assert _get(cache, *range(misses)) == list(range(misses))
    assert sum(counted) <= 2 * misses


def test_a_total_that_threads_got_wrong_is_counted_anew() -> None:
    for wrong in (-6, 6):
        cache = BoundedCache[int, int](10, lambda _: 1)
        _get(cache, *range(10))
        cache._total_bytes += wrong
        _get(cache, *range(10, 50))
        assert cache.memory_bytes == cache._total_bytes == 10
