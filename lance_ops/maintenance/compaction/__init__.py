"""Rewrite small fragments into larger ones without deleted rows, and remap the indices."""

from lance_ops.maintenance.compaction.compaction import CompactionMetrics, compact_files
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, CompactionPlan, plan_compaction

__all__ = [
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "compact_files",
    "plan_compaction",
]
