"""Verify a version: are its files there and whole, and do they say what the manifest and each other say?"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.maintenance.verification import (
    Finding,
    VerificationLevel,
    VerificationOptions,
    VerificationReport,
    plan_verification,
    unreadable_newest_version,
    unreadable_version,
    verify,
)
from lance_ops.snapshot import Snapshot
from lance_ops.verbs.contract import Execution, Measures, Preview, Section, Verb, VerbResult, WhenMoved
from lance_ops.verbs.options import Option

__all__ = ["Verify"]

_MOST_LINES = 50


@dataclass(frozen=True)
class Verify(Verb):
    """What to verify, and how thoroughly; see `VerificationOptions`.

    If the manifest of the version, by default of the newest, cannot be read, that is what the verification finds.
    """

    name: ClassVar[str] = "verify"
    summary: ClassVar[str] = "Look for missing and damaged files, wrong row counts and index entries."
    command: ClassVar[str] = "verify"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED
    opens_damaged: ClassVar[bool] = True
    only_reads: ClassVar[bool] = True

    level: Annotated[
        Literal["full", "quick"], Option("Verify all bytes, or only presence, sizes and metadata of files.")
    ] = "full"
    version: Annotated[int | None, Option("The version to verify; by default the newest.", at_least=1)] = None
    all_versions: Annotated[bool, Option("Verify the other retained versions, too.")] = False
    max_megabytes: Annotated[
        int, Option("Verify files of about this many MiB, beginning at first_part; 0 means all.", at_least=0)
    ] = 0
    first_part: Annotated[int, Option("With max_megabytes: where an earlier verification ended.", at_least=0)] = 0

    def preview(self, work: Execution) -> Preview:
        """Show what would be checked, and the files. No file is read but manifests."""
        before = Measures.of(work.data)
        damaged = self._unreadable(work)
        if damaged is not None:
            return Preview(
                f"version {damaged.version} cannot be read",
                before,
                sections=(_findings(damaged.findings),),
                facts={"version": damaged.version},
            )
        chosen = self._chosen(work)
        plan = plan_verification(chosen, self._options())
        files = list(plan.files(chosen).items())
        size = sum(size for _, size in files)
        header = ("check", "tasks", "bytes")
        checks = tuple((what, f"{count:,}", f"{size:,}" if size else "") for what, (count, size) in plan.checks.items())
        more = "" if len(files) <= _MOST_LINES else f" (the first {_MOST_LINES} of {len(files):,})"
        listed = tuple((path, f"{size:,}") for path, size in files[:_MOST_LINES])
        left = () if plan.next_part is None else (f"Other files are left: they begin at part {plan.next_part}.",)
        others = f" and {len(plan.versions) - 1} others" if len(plan.versions) > 1 else ""
        return Preview(
            f"{self.level} verification of version {plan.version}{others}: {len(files):,} files",
            before,
            before,
            reads_bytes=sum(size for _, size in plan.checks.values()) if self.level == "full" else 0,
            sections=(
                Section("What would be checked", header, checks),
                *([Section(f"Files{more}", ("file", "bytes"), listed)] if listed else []),
                *([_findings(plan.findings)] if plan.findings else []),
            ),
            warnings=left,
            facts={"version": plan.version, "files": len(files), "size_bytes": size, "tasks": plan.num_tasks},
        )

    def execute(self, work: Execution) -> VerbResult:
        """Verify, and list what was found. Damages are the result's problem."""
        report = self._unreadable(work)
        if report is None:
            report = verify(self._chosen(work), self._options(), work.runner)
        facts = {
            "version": report.version,
            "files": report.num_files,
            "size_bytes": report.size_bytes,
            "damages": len(report.damages),
            "unverified": len(report.findings) - len(report.damages),
        }
        found = (_findings(report.findings),) if report.findings else ()
        return VerbResult(facts, None, found, _problem(report), report)

    def _unreadable(self, work: Execution) -> VerificationReport | None:
        """Return the report of the version to verify, if its manifest cannot be read."""
        snapshot, level = work.data.snapshot, VerificationLevel(self.level)
        if self.version is None:
            return unreadable_newest_version(snapshot, level)
        return unreadable_version(snapshot, self.version, level)

    def _chosen(self, work: Execution) -> Snapshot:
        return work.data.snapshot if self.version is None else work.data.snapshot.at(self.version)

    def _options(self) -> VerificationOptions:
        if self.max_megabytes and self.all_versions:
            raise InvalidInput("max_megabytes bounds the verification of one version: leave out all_versions")
        if self.first_part and not self.max_megabytes:
            raise InvalidInput("first_part belongs to max_megabytes: without a bound every part is verified")
        return VerificationOptions(
            VerificationLevel(self.level),
            self.all_versions,
            max_bytes=self.max_megabytes * 1024**2 or None,
            first_part=self.first_part,
        )


def _findings(findings: tuple[Finding, ...]) -> Section:
    """Return a line for each finding, the damages first."""
    lines = [
        (
            each.severity.value,
            each.kind.value,
            "" if each.fragment_id is None else str(each.fragment_id),
            each.index_name or "",
            each.path or "",
            each.detail if each.column is None else f"column {each.column}: {each.detail}",
        )
        for each in sorted(findings, key=lambda each: not each.is_damage)
    ]
    more = "" if len(lines) <= _MOST_LINES else f" (the first {_MOST_LINES} of {len(lines):,})"
    header = ("severity", "kind", "fragment", "index", "file", "detail")
    return Section(f"Findings{more}", header, tuple(lines[:_MOST_LINES]))


def _problem(report: VerificationReport) -> str:
    if report.ok:
        return ""
    return f"version {report.version} has {len(report.damages)} damages: {report.damages[0]}; run lance-ops repair"
