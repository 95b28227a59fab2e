"""Mend a damaged version: from a copy, by an older version, by building indices again; each action is a commit."""

from lance_ops.maintenance.repair.actions import RepairAction
from lance_ops.maintenance.repair.repair_plan import Refusal, RepairOptions, RepairPlan, plan_repair
from lance_ops.maintenance.repair.repairing import RepairResult, repair

__all__ = [
    "Refusal",
    "RepairAction",
    "RepairOptions",
    "RepairPlan",
    "RepairResult",
    "plan_repair",
    "repair",
]
