"""Verify the newest version, and mend what is damaged."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from lance_ops.api import LanceDataset
from lance_ops.core.errors import RepairIncomplete
from lance_ops.core.records import dataclass
from lance_ops.maintenance.repair import RepairOptions, RepairPlan, plan_repair, plan_repair_of_manifest
from lance_ops.maintenance.verification import VerificationLevel, VerificationOptions, verify
from lance_ops.runners import Runner
from lance_ops.verbs.contract import Execution, Measures, Preview, Section, Verb, VerbResult, WhenMoved
from lance_ops.verbs.options import Option

__all__ = ["Repair"]

_MOST_LINES = 50
_MOST_NAMED = 5


@dataclass(frozen=True)
class Repair(Verb):
    """What a repair may use and lose. With the defaults it loses no row and no tag.

    The table is verified by the preview and again by the execution. If the newest manifest cannot be read, the verb
    works from the newest version that can be.
    """

    name: ClassVar[str] = "repair"
    summary: ClassVar[str] = "Verify the newest version, and mend what is damaged."
    command: ClassVar[str] = "repair"
    when_moved: ClassVar[WhenMoved] = WhenMoved.REFUSED
    opens_damaged: ClassVar[bool] = True

    copy_uri: Annotated[str | None, Option("A copy of the dataset's folder, or a deep clone, to take files from.")] = (
        None
    )
    restore_older_version: Annotated[bool, Option("Take back newer changes, if an older version is whole.")] = False
    drop_damaged_rows: Annotated[bool, Option("Delete the rows of fragments that nothing else mends.")] = False
    delete_dangling_tags: Annotated[bool, Option("Delete tags of versions that do not exist.")] = False
    level: Annotated[
        Literal["full", "quick"], Option("Verify all bytes, or only presence, sizes and metadata of files.")
    ] = "full"

    def preview(self, work: Execution) -> Preview:
        """Verify, and list what would be mended and what would not."""
        data = work.data
        plan, before = self._plan(data, work.runner), Measures.of(data)
        mended = tuple((each.name, each.explanation) for each in plan.actions[:_MOST_LINES])
        left = tuple((str(each.damage), each.reason) for each in plan.refusals[:_MOST_LINES])
        summary = f"mend version {plan.version} by {len(plan.actions)} actions"
        return Preview(
            summary if mended or left else f"version {plan.version} is whole",
            before,
            reads_bytes=before.size_bytes if self.level == "full" else 0,
            sections=(
                *([Section("What would be done", ("action", "explanation"), mended)] if mended else []),
                *([Section("What would stay damaged", ("damage", "reason"), left)] if left else []),
            ),
            warnings=(f"{len(plan.refusals)} damages would stay.",) if left else (),
            facts={"actions": len(plan.actions), "refusals": len(plan.refusals)},
            does_nothing=not mended,
        )

    def execute(self, work: Execution) -> VerbResult:
        """Mend what can be mended, then raise `RepairIncomplete` if something stays damaged."""
        data = work.data
        plan = self._plan(data, work.runner)
        result = data.repair(plan)
        left = [
            *(f"{explanation} failed: {error}" for explanation, error in result.failed),
            *(f"{refusal.damage}: {refusal.reason}" for refusal in plan.refusals),
        ]
        if left:
            named = "; ".join(left[:_MOST_NAMED])
            raise RepairIncomplete(
                f"{data.uri}: {len(result.applied)} actions were applied, and {len(left)} damages stay: {named}"
            )
        facts = {"actions": len(result.applied), "repaired_version": plan.version}
        return VerbResult(facts, data.snapshot if result.applied else None)

    def _plan(self, data: LanceDataset, runner: Runner) -> RepairPlan:
        options = RepairOptions(
            self.copy_uri,
            restore_older_version=self.restore_older_version,
            drop_damaged_rows=self.drop_damaged_rows,
            delete_dangling_tags=self.delete_dangling_tags,
        )
        of_manifest = plan_repair_of_manifest(data.snapshot, options)
        if of_manifest is not None:
            return of_manifest
        report = verify(data.snapshot, VerificationOptions(VerificationLevel(self.level)), runner)
        return plan_repair(data.snapshot, report, options)
