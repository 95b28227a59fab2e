"""Indices that this library neither builds nor searches, and keeps valid when rows move: it rewrites their addresses.

    carried_kind_of(metadata).remap(store, metadata, moves, store_out) -> files

Such an index comes from another writer. Its files name rows by address, in one column of one file; all other files,
columns and global buffers are copied as they are. A new kind is a line in `ALL_CARRIED_KINDS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.indices.carried.carried_kind import CarriedKind
    from lance_ops.indices.carried.registry import ALL_CARRIED_KINDS, carried_kind_of

__all__ = ["ALL_CARRIED_KINDS", "CarriedKind", "carried_kind_of"]

_MODULES = {
    "ALL_CARRIED_KINDS": "registry",
    "CarriedKind": "carried_kind",
    "carried_kind_of": "registry",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
