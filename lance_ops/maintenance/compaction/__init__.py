"""Rewrite small fragments into larger ones without deleted rows, and remap the indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.compaction.clustering.cluster_plan import plan_clustering
    from lance_ops.maintenance.compaction.compacting import compact_files
    from lance_ops.maintenance.compaction.compaction import CompactionMetrics, commit_rewrites
    from lance_ops.maintenance.compaction.compaction import RewriteResult as RewrittenFragments
    from lance_ops.maintenance.compaction.compaction import discard as discard_rewrite
    from lance_ops.maintenance.compaction.compaction import execute as execute_rewrite
    from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, CompactionPlan, plan_compaction
    from lance_ops.maintenance.compaction.compaction_plan import CompactionTask as RewriteTask
    from lance_ops.maintenance.compaction.migration import migrate_files, plan_migration
    from lance_ops.maintenance.compaction.option_defaults import configured_options

__all__ = [
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "RewriteTask",
    "RewrittenFragments",
    "commit_rewrites",
    "compact_files",
    "configured_options",
    "discard_rewrite",
    "execute_rewrite",
    "migrate_files",
    "plan_clustering",
    "plan_compaction",
    "plan_migration",
]

_MODULES = {
    "CompactionMetrics": "compaction",
    "CompactionOptions": "compaction_plan",
    "CompactionPlan": "compaction_plan",
    "RewriteTask": "compaction_plan:CompactionTask",
    "RewrittenFragments": "compaction:RewriteResult",
    "commit_rewrites": "compaction",
    "compact_files": "compacting",
    "configured_options": "option_defaults",
    "discard_rewrite": "compaction:discard",
    "execute_rewrite": "compaction:execute",
    "migrate_files": "migration",
    "plan_clustering": "clustering.cluster_plan",
    "plan_compaction": "compaction_plan",
    "plan_migration": "migration",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
