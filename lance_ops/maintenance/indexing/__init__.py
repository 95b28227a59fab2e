"""Build scalar indices, extend them to new rows, and drop them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.indexing.reindex import create_scalar_index, drop_index, indexed_values, optimize_indices

__all__ = [
    "create_scalar_index",
    "drop_index",
    "indexed_values",
    "optimize_indices",
]

_MODULES = {
    "create_scalar_index": "reindex",
    "drop_index": "reindex",
    "indexed_values": "reindex",
    "optimize_indices": "reindex",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
