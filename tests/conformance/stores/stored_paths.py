"""The paths of what a store lists."""

from __future__ import annotations

from lance_ops.store import Store

__all__ = ["paths_of"]


def paths_of(store: Store, prefix: str = "") -> set[str]:
    return {found.path for found in store.list(prefix)}
