"""Make an old version the newest one again."""

from __future__ import annotations

from typing import Annotated, ClassVar

from lance_ops import changing
from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.refs import branch_of, erasure_before, reference_store
from lance_ops.snapshot import history
from lance_ops.verbs.chosen_version import chosen_version
from lance_ops.verbs.contract import (
    REASON_PROPERTY,
    Execution,
    Measures,
    Preview,
    Section,
    Verb,
    VerbResult,
    WhenMoved,
    required_reason_properties,
)
from lance_ops.verbs.options import Option

__all__ = ["Restore"]


@dataclass(frozen=True)
class Restore(Verb):
    """Which version to restore, by number or by tag, and why."""

    name: ClassVar[str] = "restore"
    summary: ClassVar[str] = "Make an old version the newest again."
    command: ClassVar[str] = "restore"
    when_moved: ClassVar[WhenMoved] = WhenMoved.REFUSED

    version: Annotated[int | None, Option("The version to restore.", at_least=1)] = None
    tag: Annotated[str | None, Option("Instead: the tag of the version to restore.")] = None
    reason: Annotated[str, Option("Required. Why it comes back; the new version's transaction states it.")] = ""

    def preview(self, work: Execution) -> Preview:
        """List the versions that would be undone, and warn if rows come back that were deleted."""
        data = work.data
        required_reason_properties(self.reason, "why the version comes back")
        chosen = self._chosen(data)
        restored = LanceDataset.of(data.snapshot.at(chosen))
        undone, warnings = [], []
        for committed in history(data.snapshot):
            if committed.version <= chosen:
                break
            operation = committed.transaction.operation if committed.transaction else None
            what = type(operation).__name__ if operation else "unknown"
            reason = committed.transaction_properties.get(REASON_PROPERTY, "")
            undone.append((str(committed.version), what, reason))
            if what == "Delete":
                warnings.append(f"The rows that version {committed.version} deleted would return. {reason}".strip())
        record = erasure_before(reference_store(restored.snapshot), branch_of(restored.snapshot), chosen)
        if record is not None:
            warnings.append(f"It would be refused: the version may hold rows that erasure {record['id']} removed.")
        return Preview(
            f"restore version {chosen}, which undoes {len(undone)} versions",
            Measures.of(data),
            Measures.of(restored),
            sections=(Section("Versions that would be undone", ("version", "operation", "reason"), tuple(undone)),),
            warnings=tuple(warnings),
            facts={"restored_version": chosen},
        )

    def execute(self, work: Execution) -> VerbResult:
        """Commit the old version's content as the newest version."""
        properties = required_reason_properties(self.reason, "why the version comes back")
        chosen = self._chosen(work.data)
        return VerbResult({"restored_version": chosen}, changing.restore(work.data.snapshot.at(chosen), properties))

    def _chosen(self, data: LanceDataset) -> int:
        chosen = chosen_version(data, self.version, self.tag)
        if chosen is None:
            raise InvalidInput("give either a version or a tag to restore")
        return chosen
