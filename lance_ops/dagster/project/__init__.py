"""Write what a Dagster project of Lance datasets consists of."""

from __future__ import annotations

from lance_ops.dagster.project.scaffolder import DatasetScaffolder

__all__ = ["DatasetScaffolder"]
