"""Apply a repair's plan, one action after the other."""

from __future__ import annotations

from typing import Any

from lance_ops.core.errors import CorruptFile, LanceOpsError, RetryableConflict
from lance_ops.core.records import dataclass
from lance_ops.maintenance.repair.repair_plan import RepairPlan
from lance_ops.maintenance.repair.unreadable_versions import GoBack
from lance_ops.snapshot import Snapshot

__all__ = ["RepairResult", "repair"]


@dataclass(frozen=True)
class RepairResult:
    """The newest version after a repair, the actions that were applied, and those that failed, each with its error."""

    version: int
    applied: tuple[str, ...]
    failed: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as values for JSON."""
        failed = [{"action": explanation, "error": error} for explanation, error in self.failed]
        return {"version": self.version, "applied": list(self.applied), "failed": failed}


def repair(snapshot: Snapshot, plan: RepairPlan) -> tuple[Snapshot, RepairResult]:
    """Apply the actions of a plan to the newest version; if one fails, the others are still applied.

    Raises `RetryableConflict`, with nothing changed, if the newest version is not the one that was planned on.
    """
    newest = snapshot.committer.latest()
    if (plan.uri, plan.version) != (snapshot.uri, newest):
        raise RetryableConflict(
            f"{snapshot.uri} is at version {newest}, and the repair was planned on version {plan.version} of "
            f"{plan.uri}: verify and plan again"
        )
    if not plan.actions:  # the newest version may be one that cannot be read
        return snapshot, RepairResult(plan.version, ())
    current = snapshot if isinstance(plan.actions[0], GoBack) else snapshot.latest()
    applied: list[str] = []
    failed: list[tuple[str, str]] = []
    for action in plan.actions:
        try:
            current = action.apply(current)
        except LanceOpsError as error:
            failed.append((action.explanation, str(error)))
        else:
            applied.append(action.explanation)
    try:
        current = current.latest()
    except CorruptFile:  # going back to a version that can be read has failed
        return snapshot, RepairResult(plan.version, tuple(applied), tuple(failed))
    return current, RepairResult(current.version, tuple(applied), tuple(failed))
