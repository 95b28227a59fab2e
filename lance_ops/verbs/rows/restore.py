"""Make an old version the newest one again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar

from lance_ops import changing
from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.refs import branch_of, erasure_before, reference_store
from lance_ops.snapshot import Snapshot, history
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
from lance_ops.verbs.own_measures import COLUMNS, INDICES, OwnMeasure
from lance_ops.verbs.rows.row_difference import UnsharedRows, compare
from lance_ops.verbs.sections import column_changes, shortened_section

__all__ = ["Restore"]

_MOST_COMPARED = 100_000
_MOST_COMPARED_BYTES = 64 << 20
"""Rows, and their bytes, that a preview compares by value. It reads them all: compactions and updates move rows."""


@dataclass(frozen=True)
class Restore(Verb):
    """Which version to restore, by number or by tag, and why."""

    name: ClassVar[str] = "restore"
    summary: ClassVar[str] = "Make an old version the newest again."
    command: ClassVar[str] = "restore"
    when_moved: ClassVar[WhenMoved] = WhenMoved.REFUSED
    carries_token: ClassVar[bool] = True
    own_measures: ClassVar[tuple[OwnMeasure, ...]] = (COLUMNS, INDICES)

    version: Annotated[int | None, Option("The version to restore.", at_least=1)] = None
    tag: Annotated[str | None, Option("Instead: the tag of the version to restore.")] = None
    reason: Annotated[str, Option("Required. Why it comes back; the new version's transaction states it.")] = ""

    def preview(self, work: Execution) -> Preview:
        """List the versions that would be undone, and show rows that would go and rows that would return."""
        data = work.data
        required_reason_properties(self.reason, "why the version comes back")
        chosen = self._chosen(data)
        restored = LanceDataset.of(data.snapshot.at(chosen))
        undone, warnings = [], []
        num_undone = data.version - chosen
        for committed in history(data.snapshot):
            if committed.version <= chosen:
                break
            operation = committed.transaction.operation if committed.transaction else None
            what = type(operation).__name__ if operation else "unknown"
            reason = committed.transaction_properties.get(REASON_PROPERTY, "")
            undone.append((str(committed.version), what, reason))
            if what == "Delete":
                warnings.append(f"The rows that version {committed.version} deleted would return. {reason}".strip())
        if len(undone) < num_undone:
            warnings.append(
                f"{num_undone - len(undone)} of these versions are cleaned up, so their changes are not listed."
            )
        record = erasure_before(reference_store(restored.snapshot), branch_of(restored.snapshot), chosen)
        if record is not None:
            warnings.append(f"It would be refused: the version may hold rows that erasure {record['id']} removed.")
        rows = _RowsShown.of(data.snapshot, restored.snapshot)
        changes = tuple(line for line in column_changes(data.snapshot.schema, restored.snapshot.schema) if line[2])
        return Preview(
            f"restore version {chosen}, which undoes {num_undone} versions",
            Measures.of(data),
            Measures.of(restored),
            reads_bytes=rows.read_bytes,
            sections=(
                *rows.sections,
                *([Section("Columns that would change", ("column", "type", "change"), changes)] if changes else []),
                shortened_section("Versions that would be undone", ("version", "operation", "reason"), undone),
            ),
            warnings=(*warnings, *rows.warnings),
            facts={"restored_version": chosen, **rows.counts},
        )

    def execute(self, work: Execution) -> VerbResult:
        """Commit the old version's content as the newest version."""
        properties = required_reason_properties(self.reason, "why the version comes back")
        chosen = self._chosen(work.data)
        restored = changing.restore(work.data.snapshot.at(chosen), properties | work.token_properties)
        return VerbResult({"restored_version": chosen}, restored)

    def _chosen(self, data: LanceDataset) -> int:
        chosen = chosen_version(data, self.version, self.tag)
        if chosen is None:
            raise InvalidInput("give either a version or a tag to restore")
        return chosen


@dataclass(frozen=True)
class _RowsShown:
    """What a preview tells of the rows that would go and of those that would return."""

    sections: tuple[Section, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    read_bytes: int = 0

    @classmethod
    def of(cls, newest: Snapshot, restored: Snapshot) -> _RowsShown:
        going, returning = UnsharedRows.of(newest, restored), UnsharedRows.of(restored, newest)
        num_bytes = 0
        warnings: tuple[str, ...] = ()
        if going and returning:
            num_bytes = going.num_bytes + returning.num_bytes
            if len(going) + len(returning) > _MOST_COMPARED or num_bytes > _MOST_COMPARED_BYTES:
                what = f"{len(going):,} rows of this version and {len(returning):,} of the restored one"
                why = f"They are too many, or too large ({num_bytes:,} bytes), to compare here, so no row is shown."
                return cls(warnings=(f"{what} are in files of their own. {why}",))
            if going.not_compared:
                names = ", ".join(going.not_compared)
                warnings = (f"Rows that differ only in these columns are not counted: {names}",)
        gone, returned = compare(going, returning)
        return cls(
            (*gone.sections("Rows that would go"), *returned.sections("Rows that would return")),
            {"going_rows": gone.count, "returning_rows": returned.count},
            warnings,
            num_bytes,
        )
