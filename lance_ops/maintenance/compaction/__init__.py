"""Rewrite small fragments as larger ones without their deleted rows, and remap the indices."""

from lance_ops.maintenance.compaction.compaction import CompactionMetrics, compact_files
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, CompactionPlan, plan_compaction

__all__ = [
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "compact_files",
    "plan_compaction",
]
