"""Load the datasets of this deployment, one from each YAML file in `assets/datasets`."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from lance_ops.dagster import build_asset_definitions
from lance_ops.dagster.declaration import DatasetConfig, load_datasets

__all__ = ["asset_definitions", "declared_datasets"]


def declared_datasets() -> tuple[DatasetConfig, ...]:
    """Read the declarations. Their variables `LANCE_OPS_LAKE` and `LANCE_OPS_LANDING` are expanded at use."""
    return load_datasets(Path(__file__).parent / "datasets")


def asset_definitions() -> dg.Definitions:
    """Return the assets of every declared dataset, with their checks."""
    return dg.Definitions.merge(*[build_asset_definitions(config) for config in declared_datasets()])
