"""Prove that a store honours its conditional create, before anything depends on it.

A server without the precondition ignores it and answers success, so each of several racing writers believes that it has
won. The proof creates one key twice: the first create must succeed, and the second must be answered that the key
exists, by which HTTP promises that nothing was replaced (RFC 9110, 15.5.13). Both send the same bytes, so a server that
ignores the condition does no harm. (One client cannot prove that no *race* has two winners.) A writer that writes a new
object in any case can make the proof by it with one request more, and saves those that write and delete a probe.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections import OrderedDict
from contextlib import suppress

import pyarrow as pa

from lance_ops.core.errors import StoreError, UnsafeStore, WriteRefused
from lance_ops.core.threads import KeyedLocks
from lance_ops.store.contract import PutOutcome, Store
from lance_ops.store.paths import TEMPORARY_PREFIX

__all__ = ["prove_conditional_create", "put_new_as_proof"]

_MOST_BYTES_AS_PROOF = 1 << 20
"""An object that makes the proof is sent twice, while the other first commits to the bucket wait."""
_MOST_PROOFS = 256
"""Each renewal of credentials in storage options makes a new scope."""
_IS_SAFE: OrderedDict[object, bool] = OrderedDict()
_PROVING = KeyedLocks(threading.Lock)
os.register_at_fork(after_in_child=_PROVING.reset)


def prove_conditional_create(store: Store) -> None:
    """Do the proof once for a process and bucket, whatever it shows; wait for another thread that is doing it.

    The key is in the root, where no reader lists, under a fresh temporary name. Clean-up removes it if we cannot.
    Raises `UnsafeStore` if the proof fails, and `WriteRefused` if it cannot be done.
    """
    if not store.needs_proof:
        return
    scope = store.proof_scope
    is_safe = _IS_SAFE.get(scope)
    if is_safe is None:
        turn = _PROVING.of(scope)
        with turn.lock:
            is_safe = _IS_SAFE.get(scope)
            if is_safe is None:
                is_safe = _is_proven(store)
                _keep(scope, is_safe=is_safe)
    if not is_safe:
        raise UnsafeStore(
            f"{store.uri}: the store created the same key twice, so it ignores the condition on a write and two "
            "writers could both commit the same version; commit through an external manifest store, or let every "
            "writer pass a commit_lock"
        )


def put_new_as_proof(store: Store, path: str, data: bytes) -> None:
    """Do what `Store.put_hint` does under a path that is new, and the proof with it if nobody has done it yet.

    A long object makes no proof. Without a proof the object is written all the same, and `prove_conditional_create`
    says what is wrong.
    """
    if store.needs_proof and store.proof_scope not in _IS_SAFE and len(data) <= _MOST_BYTES_AS_PROOF:
        turn = _PROVING.of(store.proof_scope)
        with turn.lock, suppress(StoreError):
            if store.proof_scope not in _IS_SAFE and _refuses_to_replace(store, path, data):
                _keep(store.proof_scope, is_safe=True)
                return
    store.put_hint(path, data)


def _keep(scope: object, *, is_safe: bool) -> None:
    """Keep the result of a proof, and forget the oldest ones."""
    _IS_SAFE[scope] = is_safe
    while len(_IS_SAFE) > _MOST_PROOFS:
        with suppress(KeyError):  # another thread did it
            _IS_SAFE.popitem(last=False)


def _refuses_to_replace(store: Store, path: str, data: bytes) -> bool:
    """Create a new object twice; return whether the store creates it the first time and refuses the second time.

    A client that repeats a create after a lost answer finds its own object. Then the bytes show that the first create
    was done, and that the store does not just refuse every one.
    """
    first = store.put_if_absent(path, data)
    if store.put_if_absent(path, data) is not PutOutcome.EXISTS:
        return False
    return first is PutOutcome.CREATED or store.get(path) == pa.py_buffer(data)


def _is_proven(store: Store) -> bool:
    key = f"{TEMPORARY_PREFIX}probe.{uuid.uuid4().hex}"
    try:
        try:
            return _refuses_to_replace(store, key, b"probe")
        finally:
            with suppress(StoreError):
                store.delete(key)
    except UnsafeStore:
        raise
    except StoreError as error:
        raise WriteRefused(f"{store.uri}: cannot show that a conditional create is safe here: {error}") from error
