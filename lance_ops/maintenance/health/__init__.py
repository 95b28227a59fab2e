"""Measure a table's health: index coverage, findings with remedies, and a summary of each version."""

from lance_ops.maintenance.health.coverage import IndexCoverage, index_coverage
from lance_ops.maintenance.health.health_report import HealthReport, HealthThresholds, Severity, health
from lance_ops.maintenance.health.version_timeline import VersionSummary, timeline

__all__ = [
    "HealthReport",
    "HealthThresholds",
    "IndexCoverage",
    "Severity",
    "VersionSummary",
    "health",
    "index_coverage",
    "timeline",
]
