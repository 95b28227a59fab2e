"""Build scalar indices, extend them to new rows, and drop them."""

from lance_ops.maintenance.indexing.reindex import create_scalar_index, drop_index, indexed_values, optimize_indices

__all__ = [
    "create_scalar_index",
    "drop_index",
    "indexed_values",
    "optimize_indices",
]
