"""Prove that a store honours its conditional create, before anything depends on it.

A server without the precondition ignores it and answers success, so each of several racing writers believes that it has
won. The proof creates one key twice: the second create must be answered that the key exists, and the bytes of the first
one must still be there. (One client cannot prove that no *race* has two winners.)
"""

from __future__ import annotations

import os
import threading
import uuid
from contextlib import suppress

from lance_ops.core.errors import StoreError, UnsafeStore, WriteRefused
from lance_ops.core.keyed_locks import KeyedLocks
from lance_ops.store.contract import PutOutcome, Store
from lance_ops.store.paths import TEMPORARY_PREFIX

__all__ = ["prove_conditional_create"]

_PROVEN: set[object] = set()
_PROVING = KeyedLocks(threading.Lock)
os.register_at_fork(after_in_child=_PROVING.reset)


def prove_conditional_create(store: Store) -> None:
    """Do the proof once for a process and bucket; wait for another thread that is doing it.

    The key is in the root, where no reader lists, under a fresh temporary name. Clean-up removes it if we cannot.
    Raises `UnsafeStore` if the proof fails, and `WriteRefused` if it cannot be done.
    """
    if not store.needs_proof or store.proof_scope in _PROVEN:
        return
    turn = _PROVING.of(store.proof_scope)
    with turn.lock:
        if store.proof_scope not in _PROVEN:
            _prove(store)
            _PROVEN.add(store.proof_scope)


def _prove(store: Store) -> None:
    key = f"{TEMPORARY_PREFIX}probe.{uuid.uuid4().hex}"
    first, second = b"first", b"second"
    try:
        try:
            store.put_if_absent(key, first)  # EXISTS is the client's own retry after a lost answer: the key is fresh
            outcome = store.put_if_absent(key, second)
            kept = store.get(key)
        finally:
            with suppress(StoreError):
                store.delete(key)
    except UnsafeStore:
        raise
    except StoreError as error:
        raise WriteRefused(f"{store.uri}: cannot show that a conditional create is safe here: {error}") from error
    if outcome is not PutOutcome.EXISTS or kept != first:
        raise UnsafeStore(
            f"{store.uri}: the store created the same key twice, so it ignores the condition on a write and two "
            "writers could both commit the same version; commit through an external manifest store, or let every "
            "writer pass a commit_lock"
        )
