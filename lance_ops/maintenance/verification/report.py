"""The report of a verification: what was checked, how thoroughly, and what was found."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from lance_ops.core.records import dataclass
from lance_ops.maintenance.verification.findings import CheckedFile, DamageKind, Finding

__all__ = ["VerificationLevel", "VerificationReport"]

_SHOWN = 50


class VerificationLevel(Enum):
    """QUICK checks that files are there, their sizes and their metadata. FULL also checks and decodes all bytes."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True)
class VerificationReport:
    """What a verification of a version (and of `versions`, if others were included) found.

    At the level QUICK no checksum is looked for, so both lists of checksums are empty.
    """

    uri: str
    version: int
    level: VerificationLevel
    versions: tuple[int, ...]
    findings: tuple[Finding, ...]
    num_files: int
    size_bytes: int
    files_with_checksums: tuple[str, ...] = ()
    files_without_checksums: tuple[str, ...] = ()
    next_part: int | None = None
    """Where another verification of bounded size continues; None if all parts of the version were checked."""

    @classmethod
    def of(
        cls,
        uri: str,
        version: int,
        level: VerificationLevel,
        versions: Iterable[int],
        findings: Iterable[Finding],
        files: Iterable[CheckedFile],
        next_part: int | None = None,
    ) -> VerificationReport:
        """Return the report of these findings and files; a file that several tasks checked counts once."""
        by_path: dict[str, CheckedFile] = {}
        for file in files:
            if file.path not in by_path or file.has_checksums:
                by_path[file.path] = file
        distinct = [by_path[path] for path in sorted(by_path)]
        looked_for = distinct if level is VerificationLevel.FULL else []
        return cls(
            uri,
            version,
            level,
            tuple(sorted(versions)),
            _blaming_the_fragment(tuple(dict.fromkeys(findings))),
            len(distinct),
            sum(file.size_bytes for file in distinct),
            tuple(file.path for file in looked_for if file.has_checksums),
            tuple(file.path for file in looked_for if not file.has_checksums),
            next_part,
        )

    def reaches_end_from(self, first_part: int) -> bool:
        """Return whether a verification that began at a part of the version checked its last part, too."""
        return self.next_part is None or self.next_part <= first_part

    @property
    def ok(self) -> bool:
        """Whether nothing is known to be wrong."""
        return not self.damages

    @property
    def damages(self) -> tuple[Finding, ...]:
        """The findings that are known to be wrong."""
        return tuple(finding for finding in self.findings if finding.is_damage)

    @property
    def damaged_fragments(self) -> tuple[int, ...]:
        """The ids of the fragments of `version` whose own files or rows are damaged, ascending."""
        return tuple(
            sorted(
                {
                    finding.fragment_id
                    for finding in self.damages
                    if finding.fragment_id is not None
                    and finding.index_uuid is None
                    and finding.version == self.version
                }
            )
        )

    @property
    def damaged_indices(self) -> tuple[str, ...]:
        """The names of the indices of `version` with a damage."""
        names = {each.index_name for each in self.damages if each.index_name and each.version == self.version}
        return tuple(sorted(names))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values for JSON."""
        return {
            "uri": self.uri,
            "version": self.version,
            "level": self.level.value,
            "versions": list(self.versions),
            "ok": self.ok,
            "num_files": self.num_files,
            "size_bytes": self.size_bytes,
            "damaged_fragments": list(self.damaged_fragments),
            "damaged_indices": list(self.damaged_indices),
            "findings": [finding.to_dict() for finding in self.findings],
            "files_with_checksums": list(self.files_with_checksums),
            "files_without_checksums": list(self.files_without_checksums),
            "next_part": self.next_part,
        }

    def __str__(self) -> str:
        checked = f"{self.num_files} files, {self.size_bytes:,} bytes"
        number = len(self.damages)
        state = "is whole" if self.ok else f"has {number} {'damage' if number == 1 else 'damages'}"
        part = "" if self.next_part is None else f"; part {self.next_part} and others were left out"
        lines = [f"version {self.version} of {self.uri} {state} ({self.level.value} verification of {checked}{part})"]
        lines += [f"  {finding}" for finding in self.findings[:_SHOWN]]
        if len(self.findings) > _SHOWN:
            lines.append(f"  … and {len(self.findings) - _SHOWN} more findings")
        return "\n".join(lines)


def _blaming_the_fragment(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings without blame for an index whose entries differ from the rows of a damaged fragment."""
    damaged = {(each.version, each.fragment_id) for each in findings if each.is_damage and each.index_uuid is None}

    def judged(finding: Finding) -> Finding:
        is_comparison = finding.kind is DamageKind.INDEX_ENTRIES and finding.fragment_id is not None
        if is_comparison and (finding.version, finding.fragment_id) in damaged:
            return finding.as_unverified("the fragment itself is damaged")
        return finding

    return tuple(map(judged, findings))
