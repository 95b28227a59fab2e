"""Rewrite small fragments into larger ones without deleted rows, and remap the indices."""

from lance_ops.maintenance.compaction.compaction import Compaction, CompactionMetrics, compact_files
from lance_ops.maintenance.compaction.compaction import RewriteResult as RewrittenFragments
from lance_ops.maintenance.compaction.compaction import execute as execute_rewrite
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, CompactionPlan, plan_compaction
from lance_ops.maintenance.compaction.compaction_plan import CompactionTask as RewriteTask
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
    "execute_rewrite",
    "plan_compaction",
]

commit_rewrites = Compaction.commit
