"""The attributes of a component that declares a dataset."""

from __future__ import annotations

from pydantic import Field

from lance_ops.dagster.declaration.config import DatasetConfig
from lance_ops.dagster.declaration.runner_choice import RunnerChoice

__all__ = ["COMPONENT_TYPE", "ComponentAttributes"]

COMPONENT_TYPE = "lance_ops.dagster.LanceDatasetComponent"
"""The `type` of a `defs.yaml` that declares a dataset."""


class ComponentAttributes(DatasetConfig):
    """A declared dataset that loads alone: its tasks run in threads unless it chooses another runner."""

    runner: RunnerChoice = Field(
        default="threads",
        description="What executes the tasks: threads, spark, {spark: {master, conf}}, or code_location for its "
        "resource `lance_runner`.",
    )
