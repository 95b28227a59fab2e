"""Rewrite small fragments into larger ones without deleted rows, and remap the indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.compaction.clustering.cluster_plan import plan_clustering
    from lance_ops.maintenance.compaction.compacting import compact_files
    from lance_ops.maintenance.compaction.compaction_plan import (
        CompactionOptions,
        CompactionPlan,
        RewriteTask,
        is_small,
        plan_compaction,
    )
    from lance_ops.maintenance.compaction.migration import migrate_files, plan_migration
    from lance_ops.maintenance.compaction.option_defaults import configured_options
    from lance_ops.maintenance.compaction.rewriting import (
        CompactionMetrics,
        RewriteOutcome,
        commit_rewrites,
        discard_rewrite,
        execute_rewrite,
    )

__all__ = [
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "RewriteOutcome",
    "RewriteTask",
    "commit_rewrites",
    "compact_files",
    "configured_options",
    "discard_rewrite",
    "execute_rewrite",
    "is_small",
    "migrate_files",
    "plan_clustering",
    "plan_compaction",
    "plan_migration",
]

_MODULES = {
    "CompactionMetrics": "rewriting",
    "CompactionOptions": "compaction_plan",
    "CompactionPlan": "compaction_plan",
    "RewriteOutcome": "rewriting",
    "RewriteTask": "compaction_plan",
    "commit_rewrites": "rewriting",
    "compact_files": "compacting",
    "configured_options": "option_defaults",
    "discard_rewrite": "rewriting",
    "execute_rewrite": "rewriting",
    "is_small": "compaction_plan",
    "migrate_files": "migration",
    "plan_clustering": "clustering.cluster_plan",
    "plan_compaction": "compaction_plan",
    "plan_migration": "migration",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
