"""Delete many objects, with few requests where the store has one that deletes several."""

from __future__ import annotations

from collections.abc import Iterable

from lance_ops.store import Store

__all__ = ["delete_files"]


def delete_files(store: Store, paths: Iterable[str]) -> None:
    """Delete objects. Requests follow the given order; within one request the store chooses the order.

    What a request did not delete is tried again by itself, which raises the store's `StoreError`.
    """
    waiting = [*paths]
    at_once = store.deleted_at_once
    for first in range(0, len(waiting), at_once):
        for path in sorted(store.delete_several(waiting[first : first + at_once])):
            store.delete(path)
