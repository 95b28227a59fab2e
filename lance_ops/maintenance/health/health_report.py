"""Report a version's measures, and a finding with advice for each one beyond its threshold."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.maintenance.compaction import is_small
from lance_ops.maintenance.health.coverage import IndexCoverage, index_coverage, indexed_ratio
from lance_ops.snapshot import Snapshot

__all__ = ["HealthFinding", "HealthReport", "HealthThresholds", "Severity", "health", "rows_of_small_fragments"]

_ROWS_OF_COMPACTION = 1024 * 1024


def rows_of_small_fragments(target_rows_per_fragment: int) -> int:
    """Return the number of rows below which a fragment is small: three quarters of what a compaction aims at.

    A fragment that a compaction has filled is then not small again as soon as a few of its rows are deleted.
    """
    return max(target_rows_per_fragment * 3 // 4, 1)


class Severity(Enum):
    """A warning is beyond its threshold, an error is beyond `error_factor` times its threshold."""

    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class HealthThresholds:
    """The limits beyond which a measure is a finding; ratios are 0 to 1. See `Severity` for `error_factor`.

    A fragment with fewer live rows than `small_fragment_rows` is small, unless it has as many bytes as a task of a
    compaction reads. The default is for compactions of the default target. `max_versions` bounds all versions that the
    table keeps. The policy of a debt says what a clean-up may remove; there, it bounds these versions alone.
    """

    small_fragment_rows: int = rows_of_small_fragments(_ROWS_OF_COMPACTION)
    max_small_fragments: int = 10
    max_deleted_ratio: float = 0.1
    min_indexed_ratio: float = 0.95
    max_versions: int = 200
    error_factor: float = 3.0

    def __post_init__(self) -> None:
        for name in ("max_deleted_ratio", "min_indexed_ratio"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name} is a ratio, 0 to 1, not {getattr(self, name)}")


@dataclass(frozen=True)
class HealthFinding:
    """One measure beyond its threshold, and what to do."""

    severity: Severity
    what: str
    advice: str


@dataclass(frozen=True)
class HealthReport:
    """The measures of a version. `size_bytes` is the size of the version's data files."""

    version: int
    timestamp: datetime | None
    num_rows: int
    num_fragments: int
    num_small_fragments: int
    num_deleted_rows: int
    num_versions: int
    size_bytes: int
    indices: tuple[IndexCoverage, ...]
    findings: tuple[HealthFinding, ...]

    @property
    def deleted_ratio(self) -> float:
        """The share of the physical rows that is deleted."""
        physical = self.num_rows + self.num_deleted_rows
        return self.num_deleted_rows / physical if physical else 0.0

    @property
    def indexed_ratio(self) -> float | None:
        """The lowest coverage of an index; None without indices."""
        return indexed_ratio(self.indices)

    @property
    def is_healthy(self) -> bool:
        """Whether there are no findings."""
        return not self.findings


def health(
    snapshot: Snapshot, thresholds: HealthThresholds | None = None, max_bytes_per_file: int | None = None
) -> HealthReport:
    """Measure a version from its manifest alone; no data file is read.

    `max_bytes_per_file` is the limit of the table's compactions, if they have one: a fragment of as many bytes is full.
    """
    limits = thresholds or HealthThresholds()
    rows = [snapshot.num_live_rows(fragment) for fragment in snapshot.fragments]
    small = sum(is_small(snapshot, each, limits.small_fragment_rows, max_bytes_per_file) for each in snapshot.fragments)
    deleted = sum(fragment.physical_rows for fragment in snapshot.fragments) - sum(rows)
    num_versions = len(snapshot.committer.versions())
    indices = index_coverage(snapshot)
    return HealthReport(
        version=snapshot.version,
        timestamp=snapshot.manifest.timestamp,
        num_rows=sum(rows),
        num_fragments=len(rows),
        num_small_fragments=small,
        num_deleted_rows=deleted,
        num_versions=num_versions,
        size_bytes=snapshot.size_bytes,
        indices=indices,
        findings=tuple(_findings(limits, small, deleted, sum(rows), num_versions, indices)),
    )


def _findings(
    limits: HealthThresholds,
    small: int,
    deleted: int,
    live: int,
    num_versions: int,
    indices: tuple[IndexCoverage, ...],
) -> list[HealthFinding]:
    found = []

    def over(value: float, limit: float, what: str, advice: str) -> None:
        if value > limit:
            severity = Severity.ERROR if value > limit * limits.error_factor else Severity.WARNING
            found.append(HealthFinding(severity, what, advice))

    over(
        small,
        limits.max_small_fragments,
        f"{small} fragments have fewer than {limits.small_fragment_rows:,} rows",
        "compact: every scan opens each of them",
    )
    ratio = deleted / (deleted + live) if deleted else 0.0
    over(ratio, limits.max_deleted_ratio, f"{ratio:.1%} of the stored rows are deleted", "compact to drop them")
    for index in indices:
        missing = 1 - index.indexed_ratio
        over(
            missing,
            1 - limits.min_indexed_ratio,
            f"index {index.name} does not cover {missing:.1%} of the rows",
            "reindex: every query scans the other rows",
        )
    over(
        num_versions,
        limits.max_versions,
        f"{num_versions} versions are kept",
        "clean up old versions: each keeps its files",
    )
    return found
