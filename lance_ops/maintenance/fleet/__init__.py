"""Maintain all tables beneath a root within a budget, the worst debt first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.fleet.allotment import allot
    from lance_ops.maintenance.fleet.discovery import ROOT_ITSELF, find_tables, why_excluded
    from lance_ops.maintenance.fleet.maintaining import Budget, maintain
    from lance_ops.maintenance.fleet.measuring import Measured, measure_fleet
    from lance_ops.maintenance.fleet.report import FleetReport, FleetStatus, TableOutcome

__all__ = [
    "ROOT_ITSELF",
    "Budget",
    "FleetReport",
    "FleetStatus",
    "Measured",
    "TableOutcome",
    "allot",
    "find_tables",
    "maintain",
    "measure_fleet",
    "why_excluded",
]

_MODULES = {
    "Budget": "maintaining",
    "FleetReport": "report",
    "FleetStatus": "report",
    "Measured": "measuring",
    "ROOT_ITSELF": "discovery",
    "TableOutcome": "report",
    "allot": "allotment",
    "find_tables": "discovery",
    "maintain": "maintaining",
    "measure_fleet": "measuring",
    "why_excluded": "discovery",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
