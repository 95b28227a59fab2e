"""Mend a damaged version: from a copy, by an older version, by building indices again, or by dropping rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
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

_MODULES = {
    "Refusal": "repair_plan",
    "RepairAction": "actions",
    "RepairOptions": "repair_plan",
    "RepairPlan": "repair_plan",
    "RepairResult": "repairing",
    "open_newest_readable": "unreadable_versions",
    "plan_repair": "repair_plan",
    "plan_repair_of_manifest": "repair_plan",
    "repair": "repairing",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
