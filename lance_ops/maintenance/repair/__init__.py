"""Mend a damaged version: from a copy, by an older version, by building indices again, or by dropping rows."""

from lance_ops.maintenance.repair.actions import RepairAction
from lance_ops.maintenance.repair.repair_plan import (
    Refusal,
    RepairOptions,
    RepairPlan,
    plan_repair,
    plan_repair_of_manifest,
)
from lance_ops.maintenance.repair.repairing import RepairResult, repair
from lance_ops.maintenance.repair.unreadable_versions import open_newest_readable

__all__ = [
    "Refusal",
    "RepairAction",
    "RepairOptions",
    "RepairPlan",
    "RepairResult",
    "open_newest_readable",
    "plan_repair",
    "plan_repair_of_manifest",
    "repair",
]
