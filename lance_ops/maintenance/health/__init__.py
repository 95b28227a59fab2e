"""Measure a table: index coverage, findings with remedies, columns, rows, and a summary of each version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.health.coverage import IndexCoverage, index_coverage
    from lance_ops.maintenance.health.health_report import (
        HealthReport,
        HealthThresholds,
        Severity,
        health,
        rows_of_small_fragments,
    )
    from lance_ops.maintenance.health.measured_columns import ColumnStatistics, column_statistics
    from lance_ops.maintenance.health.row_count import count_rows
    from lance_ops.maintenance.health.rows_changed import LastChange, RowChanges, changed_rows, last_change, row_changes
    from lance_ops.maintenance.health.version_difference import Change, VersionDifference, compare_versions
    from lance_ops.maintenance.health.version_timeline import VersionSummary, summarised_versions, timeline

__all__ = [
    "Change",
    "ColumnStatistics",
    "HealthReport",
    "HealthThresholds",
    "IndexCoverage",
    "LastChange",
    "RowChanges",
    "Severity",
    "VersionDifference",
    "VersionSummary",
    "changed_rows",
    "column_statistics",
    "compare_versions",
    "count_rows",
    "health",
    "index_coverage",
    "last_change",
    "row_changes",
    "rows_of_small_fragments",
    "summarised_versions",
    "timeline",
]

_MODULES = {
    "Change": "version_difference",
    "ColumnStatistics": "measured_columns",
    "HealthReport": "health_report",
    "HealthThresholds": "health_report",
    "IndexCoverage": "coverage",
    "LastChange": "rows_changed",
    "RowChanges": "rows_changed",
    "Severity": "health_report",
    "VersionDifference": "version_difference",
    "VersionSummary": "version_timeline",
    "changed_rows": "rows_changed",
    "column_statistics": "measured_columns",
    "compare_versions": "version_difference",
    "count_rows": "row_count",
    "health": "health_report",
    "index_coverage": "coverage",
    "last_change": "rows_changed",
    "row_changes": "rows_changed",
    "rows_of_small_fragments": "health_report",
    "summarised_versions": "version_timeline",
    "timeline": "version_timeline",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
