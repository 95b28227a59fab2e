"""Callers that use the same key share a lock."""

from __future__ import annotations

import threading

from lance_ops.core.threads import KeyedLocks


def test_callers_with_the_same_key_share_a_lock_and_other_keys_have_their_own() -> None:
    locks = KeyedLocks(threading.Lock)
    first, other = locks.of("a"), locks.of("b")
    assert locks.of("a") is first is not other
    with first.lock:
        assert not locks.of("a").lock.acquire(blocking=False)
        assert locks.of("b").lock.acquire(blocking=False)


def test_an_unreferenced_lock_is_dropped_and_a_reset_drops_all() -> None:
    made: list[threading.Lock] = []

    def make() -> threading.Lock:
        made.append(threading.Lock())
        return made[-1]

    locks = KeyedLocks(make)
    assert locks.of("a").lock is made[0]
    kept = locks.of("a")
    assert kept.lock is made[1]
    locks.reset()
    assert locks.of("a").lock is not kept.lock
