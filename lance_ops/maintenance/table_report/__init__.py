"""Report a table to people: measure it whole, draw its versions, and write one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.table_report.charted_versions import branches_begun, trend_svg, version_svg
    from lance_ops.maintenance.table_report.measured_table import TableReport, report_table
    from lance_ops.maintenance.table_report.table_page import report_page

__all__ = ["TableReport", "branches_begun", "report_page", "report_table", "trend_svg", "version_svg"]

_MODULES = {
    "TableReport": "measured_table",
    "branches_begun": "charted_versions",
    "report_page": "table_page",
    "report_table": "measured_table",
    "trend_svg": "charted_versions",
    "version_svg": "charted_versions",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
