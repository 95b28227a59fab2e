"""The findings of a verification as values, and a collector that turns errors into them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from enum import Enum
from typing import Any
from uuid import UUID

from lance_ops.core.errors import CorruptFile, LanceOpsError, ObjectNotFound, StoreError, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.table import IndexMetadata
from lance_ops.table.manifest import ObjectLocation

__all__ = ["CheckedFile", "DamageKind", "Finding", "FindingCollector", "FindingSeverity"]


class DamageKind(Enum):
    """What a finding is about."""

    MANIFEST = "manifest"
    MISSING_FILE = "missing file"
    FILE_SIZE = "file size"
    CHECKSUM = "checksum"
    FILE_CONTENT = "file content"
    FILE_SCHEMA = "file schema"
    ROW_COUNT = "row count"
    DELETION_VECTOR = "deletion vector"
    ROW_IDS = "row ids"
    ROW_VERSIONS = "row versions"
    BLOB = "blob"
    INDEX_METADATA = "index metadata"
    INDEX_FILE = "index file"
    INDEX_ENTRIES = "index entries"
    TRANSACTION_FILE = "transaction file"
    VERSION_HINT = "version hint"
    TAG = "tag"
    BRANCH = "branch"


class FindingSeverity(Enum):
    """DAMAGED is known to be wrong. UNVERIFIED could not be checked: it cannot be read here, or the store failed."""

    DAMAGED = "damaged"
    UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or could not be checked.

    `path` is the URI of the file concerned, `reference` the name of the tag or branch, where there is one.
    """

    kind: DamageKind
    severity: FindingSeverity
    detail: str
    version: int
    path: str | None = None
    fragment_id: int | None = None
    index_name: str | None = None
    index_uuid: UUID | None = None
    column: str | None = None
    reference: str | None = None

    @property
    def is_damage(self) -> bool:
        """Whether something is known to be wrong."""
        return self.severity is FindingSeverity.DAMAGED

    def as_unverified(self, reason: str) -> Finding:
        """Return the finding as something that could not be checked, for a reason."""
        return replace(self, severity=FindingSeverity.UNVERIFIED, detail=f"{self.detail}; {reason}")

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as values for JSON, without the names that do not apply."""
        values = {
            "kind": self.kind.value,
            "severity": self.severity.value,
            "detail": self.detail,
            "version": self.version,
            "path": self.path,
            "fragment_id": self.fragment_id,
            "index_name": self.index_name,
            "index_uuid": None if self.index_uuid is None else str(self.index_uuid),
            "column": self.column,
            "reference": self.reference,
        }
        return {name: value for name, value in values.items() if value is not None}

    def __str__(self) -> str:
        places = [
            "" if self.fragment_id is None else f"fragment {self.fragment_id}",
            "" if self.index_name is None else f"index {self.index_name!r}",
            "" if self.column is None else f"column {self.column!r}",
            self.path or "",
        ]
        where = ", ".join(filter(None, places))
        return f"{self.severity.value}: {self.kind.value}: {f'{where}: ' if where else ''}{self.detail}"


@dataclass(frozen=True)
class CheckedFile:
    """A file that was found. A quick verification looks for no checksums, so it finds none."""

    path: str
    size_bytes: int
    has_checksums: bool = False


@dataclass
class FindingCollector:
    """Collects the findings and files of one version; `of_fragment`, … name what the findings are about."""

    version: int
    fragment_id: int | None = None
    index: IndexMetadata | None = None
    reference: str | None = None
    findings: list[Finding] = field(default_factory=list)
    files: list[CheckedFile] = field(default_factory=list)

    def of_version(self, version: int) -> FindingCollector:
        """Return a collector into the same lists, for findings about another version."""
        return FindingCollector(version, findings=self.findings, files=self.files)

    def of_fragment(self, fragment_id: int) -> FindingCollector:
        """Return a collector into the same lists, for findings about a fragment."""
        return FindingCollector(self.version, fragment_id, findings=self.findings, files=self.files)

    def of_index(self, index: IndexMetadata) -> FindingCollector:
        """Return a collector into the same lists, for findings about an index segment."""
        return FindingCollector(self.version, index=index, findings=self.findings, files=self.files)

    def of_reference(self, name: str) -> FindingCollector:
        """Return a collector into the same lists, for findings about a tag or a branch."""
        return FindingCollector(self.version, reference=name, findings=self.findings, files=self.files)

    def damaged(
        self,
        kind: DamageKind,
        detail: str,
        path: str | None = None,
        *,
        column: str | None = None,
        fragment_id: int | None = None,
    ) -> None:
        """Record a damage; `fragment_id` names a fragment in a finding about an index."""
        self._add(kind, FindingSeverity.DAMAGED, detail, path, column, fragment_id)

    def unverified(self, kind: DamageKind, detail: str, path: str | None = None, *, column: str | None = None) -> None:
        """Record something that could not be checked."""
        self._add(kind, FindingSeverity.UNVERIFIED, detail, path, column)

    def failed(
        self, kind: DamageKind, error: LanceOpsError, path: str | None = None, *, column: str | None = None
    ) -> None:
        """Record an error of a read: unverified for an unsupported feature or an outage, a damage for any other."""
        match error:
            case ObjectNotFound():
                self.damaged(DamageKind.MISSING_FILE, "the file does not exist", path or error.path, column=column)
            case CorruptFile():
                self.damaged(kind, f"{error.place}: {error.reason}", error.path, column=column)
            case UnsupportedFeature() | StoreError():
                self.unverified(kind, str(error), path, column=column)
            case _:
                self.damaged(kind, str(error), path, column=column)

    @contextmanager
    def errors_as(self, kind: DamageKind, path: str | None = None, *, column: str | None = None) -> Iterator[None]:
        """Record an error of the block as a finding, and continue after the block."""
        try:
            yield
        except LanceOpsError as error:
            self.failed(kind, error, path, column=column)

    def is_there(self, location: ObjectLocation, stated_bytes: int) -> bool:
        """Return whether a file exists with the stated size, and record the file, or why not. 0 states no size."""
        try:
            size = location.store.size(location.path)
        except LanceOpsError as error:
            self.failed(DamageKind.MISSING_FILE, error, location.uri)
            return False
        self.files.append(CheckedFile(location.uri, size))
        if stated_bytes and size != stated_bytes:
            self.damaged(DamageKind.FILE_SIZE, f"{size} bytes, but {stated_bytes} are recorded", location.uri)
            return False
        return True

    def _add(
        self,
        kind: DamageKind,
        severity: FindingSeverity,
        detail: str,
        path: str | None,
        column: str | None,
        fragment_id: int | None = None,
    ) -> None:
        self.findings.append(
            Finding(
                kind,
                severity,
                detail,
                self.version,
                path,
                self.fragment_id if fragment_id is None else fragment_id,
                None if self.index is None else self.index.name,
                None if self.index is None else self.index.uuid,
                column,
                self.reference,
            )
        )
