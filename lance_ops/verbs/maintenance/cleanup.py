"""Remove old versions, and the files that nothing needs any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.maintenance.cleanup import (
    MOST_DAYS,
    CleanupBounds,
    CleanupExplanation,
    CleanupOptions,
    CleanupTasks,
    cleanup_old_versions,
    explain_with_bounds,
)
from lance_ops.verbs.contract import Execution, Measures, Preview, Section, Verb, VerbResult, WhenMoved
from lance_ops.verbs.extent import Extent
from lance_ops.verbs.options import Option
from lance_ops.verbs.own_measures import VERSIONS, OwnMeasure

__all__ = ["Cleanup"]

_MOST_FILES = 50
_MOST_RANGES = 20


@dataclass(frozen=True)
class Cleanup(Verb):
    """Which versions may go; tagged versions stay. Without limits, those that are older than two weeks go.

    `delete_unverified` also removes files younger than seven days that no version names. It is safe only while no other
    process writes.
    """

    name: ClassVar[str] = "cleanup"
    summary: ClassVar[str] = "Remove old versions and the files that nothing needs."
    command: ClassVar[str] = "cleanup"
    when_moved: ClassVar[WhenMoved] = WhenMoved.BOUNDED
    own_measures: ClassVar[tuple[OwnMeasure, ...]] = (VERSIONS,)

    older_than_days: Annotated[
        float | None, Option("Remove versions that are older than this many days.", at_least=0, at_most=MOST_DAYS)
    ] = None
    retain_versions: Annotated[int | None, Option("Keep this many of the newest versions.", at_least=1)] = None
    delete_unverified: Annotated[
        bool,
        Option(
            "Also delete files younger than seven days that no version names. Only safe while no other process writes."
        ),
    ] = False
    versions: Annotated[tuple[int, ...] | None, Option("Instead of limits: the versions to remove.")] = None
    keep_branch_starts: Annotated[bool, Option("Keep the versions that branches began with.")] = True
    delete_rate_limit: Annotated[int | None, Option("Delete at most this many files a second.", at_least=1)] = None

    def preview(self, work: Execution) -> Preview:
        """Count the versions and files, and list some of them."""
        data = work.data
        explained, bounds = explain_with_bounds(
            data.snapshot,
            self._options(),
            include_files=True,
            max_files=_MOST_FILES,
            tasks=CleanupTasks.of(work.runner),
        )
        stats, size = explained.stats, Measures.of(data)
        files = tuple((path,) for path in explained.candidate_files)
        return Preview(
            f"remove {stats.old_versions:,} versions and {stats.bytes_removed:,} bytes",
            size,
            size,
            sections=(_counts(explained), Section("Files that would go", ("file",), files)) if files else (),
            warnings=explained.warnings,
            facts=asdict(stats),
            does_nothing=not files,
            extent=_extent(bounds),
        )

    def execute(self, work: Execution) -> VerbResult:
        """Remove them, but nothing that a tag, pin or branch needs, or that has become old since a preview."""
        options = self._options(None if work.promised is None else _bounds(work.promised))
        return VerbResult(asdict(cleanup_old_versions(work.data.snapshot, options, CleanupTasks.of(work.runner))))

    def _options(self, within: CleanupBounds | None = None) -> CleanupOptions:
        return CleanupOptions(
            older_than=None if self.older_than_days is None else timedelta(days=self.older_than_days),
            retain_versions=self.retain_versions,
            delete_unverified=self.delete_unverified,
            versions=self.versions,
            keep_branch_starts=self.keep_branch_starts,
            delete_rate_limit=self.delete_rate_limit,
            error_if_tagged_old_versions=False,
            within=within,
        )


def _extent(bounds: CleanupBounds) -> Extent:
    """Return the bounds of a clean-up as a stored plan keeps them."""
    return {"versions": tuple(map(str, sorted(bounds.versions))), "planned_at": bounds.planned_at.isoformat()}


def _bounds(extent: Extent) -> CleanupBounds:
    """Return the bounds that a stored plan kept."""
    match extent:
        case {"versions": tuple() as versions, "planned_at": str() as planned_at}:
            return CleanupBounds(frozenset(map(int, versions)), datetime.fromisoformat(planned_at))
    raise InvalidInput("the plan does not say which versions its clean-up may remove: make it again")


def _counts(explained: CleanupExplanation) -> Section:
    """Return how many versions and files of each kind would go, and which versions."""
    stats = explained.stats
    lines = (
        ("versions", f"{stats.old_versions:,}", _ranges(explained.old_versions)),
        ("data files", f"{stats.data_files_removed:,}", ""),
        ("deletion files", f"{stats.deletion_files_removed:,}", ""),
        ("index files", f"{stats.index_files_removed:,}", ""),
        ("transactions", f"{stats.transaction_files_removed:,}", ""),
        ("bytes of all files", f"{stats.bytes_removed:,}", ""),
        ("bytes of files that no version names", f"{stats.orphan_bytes:,}", ""),
    )
    return Section("What would go", ("", "number", "which"), lines)


def _ranges(ascending: Sequence[int]) -> str:
    """Return numbers as text, such as `1 to 4, 6`; only the beginning of many."""
    parts: list[list[int]] = []
    for number in ascending:
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    shown = ", ".join(" to ".join(map(str, part)) for part in parts[:_MOST_RANGES])
    return shown if len(parts) <= _MOST_RANGES else f"{shown}, …"
