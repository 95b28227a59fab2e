"""Pay what a dataset owes when it is owed: a sensor measures, and one job pays within the declared budget."""

from __future__ import annotations

from lance_ops.dagster.upkeep.definitions import build_upkeep

__all__ = ["build_upkeep"]
