"""Work in threads: how many to use, the pool that runs them, an ordered map, and locks by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.core.threads.cores import available_cores
    from lance_ops.core.threads.keyed_locks import KeyedLock, KeyedLocks
    from lance_ops.core.threads.ordered_map import map_ordered
    from lance_ops.core.threads.thread_pool import ThreadPool

__all__ = ["KeyedLock", "KeyedLocks", "ThreadPool", "available_cores", "map_ordered"]

_MODULES = {
    "KeyedLock": "keyed_locks",
    "KeyedLocks": "keyed_locks",
    "ThreadPool": "thread_pool",
    "available_cores": "cores",
    "map_ordered": "ordered_map",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
