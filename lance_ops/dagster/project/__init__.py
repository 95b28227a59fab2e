"""Start a Dagster project of Lance datasets: look at what is there, and write the files that declare it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use
from lance_ops.dagster.project.fleet_scaffolder import FleetScaffolder
from lance_ops.dagster.project.resources_scaffolder import ResourcesScaffolder
from lance_ops.dagster.project.scaffolder import DatasetScaffolder

if TYPE_CHECKING:
    from lance_ops.dagster.project.component_schema import defs_schema
    from lance_ops.dagster.project.start import StartedProject, start_project

__all__ = [
    "DatasetScaffolder",
    "FleetScaffolder",
    "ResourcesScaffolder",
    "StartedProject",
    "defs_schema",
    "start_project",
]

_MODULES = {"StartedProject": "start", "defs_schema": "component_schema", "start_project": "start"}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
