"""Collect what a person wants to know of a table: health, debt, column sizes, and its latest versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import islice

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field
from lance_ops.maintenance.debt import DebtPolicy, TableDebt, measure_debt, read_cost
from lance_ops.maintenance.health import HealthReport, VersionSummary, health, summarised_versions
from lance_ops.maintenance.table_report.charted_versions import branches_begun
from lance_ops.snapshot import Snapshot, field_sizes
from lance_ops.transactions import COMMIT_MESSAGE

__all__ = ["ColumnSize", "PastVersion", "TableReport", "report_table"]


@dataclass(frozen=True)
class ColumnSize:
    """A top-level column. `size_bytes` counts its pages with those of its children, None if it is unknown."""

    name: str
    type: str
    nullable: bool
    size_bytes: int | None


@dataclass(frozen=True)
class PastVersion:
    """A retained version. `moment` is in UTC, empty if the version's writer did not state it."""

    version: int
    moment: str
    operation: str
    message: str
    tags: tuple[str, ...]
    num_rows: int
    num_fragments: int
    num_deleted_rows: int
    size_bytes: int
    read_amplification: float


@dataclass(frozen=True)
class TableReport:
    """A table at its measured version. Columns are the largest first, versions the oldest first.

    `debt` is None if it could not be measured. `gaps` says what could not be measured, and why.
    """

    uri: str
    health: HealthReport
    debt: TableDebt | None
    columns: tuple[ColumnSize, ...]
    past: tuple[PastVersion, ...]
    branches: Mapping[int, Sequence[str]] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()


def report_table(snapshot: Snapshot, policy: DebtPolicy | None = None, *, max_versions: int = 60) -> TableReport:
    """Measure a table. It reads manifests and the footers of data files, and no values.

    A damaged file becomes a gap of the report. Raises what `health` raises: without it there is nothing to report.
    """
    policy = policy or DebtPolicy()
    gaps: list[str] = []
    debt: TableDebt | None = None
    sizes: Mapping[int, int] | None = None
    past: list[PastVersion] = []
    branches: Mapping[int, Sequence[str]] = {}
    measured = health(snapshot, policy.limits)
    try:
        debt = measure_debt(snapshot, policy)
    except LanceOpsError as error:
        gaps.append(f"debt: {error}")
    try:
        sizes = field_sizes(snapshot)
    except LanceOpsError as error:
        gaps.append(f"sizes of columns: {error}")
    try:
        for opened, summary in islice(summarised_versions(snapshot), max_versions):
            past.append(_past(summary, read_cost(opened, policy).amplification))
        branches = branches_begun(snapshot)
    except LanceOpsError as error:
        gaps.append(f"versions: {error}")
    columns = [_column(each, sizes) for each in snapshot.schema.fields]
    columns.sort(key=lambda each: -(each.size_bytes or 0))
    return TableReport(snapshot.uri, measured, debt, tuple(columns), tuple(past[::-1]), branches, tuple(gaps))


def _column(column: Field, sizes: Mapping[int, int] | None) -> ColumnSize:
    size = sum(sizes[each.id] for each in column.walk()) if sizes is not None and any(sizes.values()) else None
    return ColumnSize(column.name, str(column.arrow_type), column.nullable, size)


def _past(summary: VersionSummary, read_amplification: float) -> PastVersion:
    return PastVersion(
        version=summary.version,
        moment=f"{summary.timestamp:%Y-%m-%d %H:%M:%S}" if summary.timestamp else "",
        operation=summary.operation,
        message=summary.transaction_properties.get(COMMIT_MESSAGE, ""),
        tags=summary.tags,
        num_rows=summary.num_rows,
        num_fragments=summary.num_fragments,
        num_deleted_rows=summary.num_deleted_rows,
        size_bytes=summary.size_bytes,
        read_amplification=read_amplification,
    )
