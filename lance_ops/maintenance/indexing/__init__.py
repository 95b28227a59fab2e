"""Build scalar indices, extend them to new rows, and drop them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.indexing.reindex import (
        create_scalar_index,
        drop_index,
        optimize_indices,
        rebuild_index,
    )
    from lance_ops.maintenance.indexing.remap_tasks import remap_segment
    from lance_ops.maintenance.indexing.task_shares import TaskSizes
    from lance_ops.maintenance.indexing.training_rows import indexed_values

__all__ = [
    "TaskSizes",
    "create_scalar_index",
    "drop_index",
    "indexed_values",
    "optimize_indices",
    "rebuild_index",
    "remap_segment",
]

_MODULES = {
    "TaskSizes": "task_shares",
    "create_scalar_index": "reindex",
    "drop_index": "reindex",
    "indexed_values": "training_rows",
    "optimize_indices": "reindex",
    "rebuild_index": "reindex",
    "remap_segment": "remap_tasks",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
