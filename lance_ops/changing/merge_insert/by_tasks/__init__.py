"""Merge a large source by tasks that join keys and row addresses: each row's values go from its source to its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.changing.merge_insert.by_tasks.merging import (
        DistributedMerge,
        TaskSizes,
        distributed_merge,
        plan_distributed_merge,
        prepare_distributed_merge,
    )
    from lance_ops.changing.merge_insert.by_tasks.segment_files import new_folder
    from lance_ops.changing.merge_insert.by_tasks.source_rows import SourceRows

__all__ = [
    "DistributedMerge",
    "SourceRows",
    "TaskSizes",
    "distributed_merge",
    "new_folder",
    "plan_distributed_merge",
    "prepare_distributed_merge",
]

_MODULES = {
    "DistributedMerge": "merging",
    "SourceRows": "source_rows",
    "TaskSizes": "merging",
    "distributed_merge": "merging",
    "new_folder": "segment_files",
    "plan_distributed_merge": "merging",
    "prepare_distributed_merge": "merging",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
