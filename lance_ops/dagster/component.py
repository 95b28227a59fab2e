"""Load a dataset that a `defs.yaml` declares.

    type: lance_ops.dagster.LanceDatasetComponent
    attributes:
      name: flights
      uri: ${LAKE}/flights.lance

`attributes` holds the same keys as a dataset's own YAML file, except that the tasks run in threads by default, so that
the file loads alone.

Dagster renders `{{ env.NAME }}`, for any value, when it loads definitions. This package expands `${NAME}` when a run
needs the value, so that no definition contains a secret.
"""

from __future__ import annotations

from typing import Self

import dagster as dg
from pydantic import BaseModel

from lance_ops.dagster.declaration import ComponentAttributes, load_attributes, with_templates
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.project import DatasetScaffolder

__all__ = ["LanceDatasetComponent"]


@dg.scaffold_with(DatasetScaffolder)
class LanceDatasetComponent(dg.Component):
    """A maintained Lance dataset: its assets, checks, jobs, sensors and schedule."""

    def __init__(self, config: ComponentAttributes) -> None:
        self.config = config

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """Return the declaration's model, in which templates may stand for values; `load` checks the rendered ones."""
        return with_templates(ComponentAttributes)

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Return what `dg list components` shows."""
        return dg.ComponentTypeSpec(
            description="A Lance dataset: ingested exactly once from a landing folder, and kept healthy.",
            tags=["lance", "ingestion", "maintenance"],
        )

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Render the templates, and check the declaration again with the rendered values."""
        return cls(
            load_attributes(context.path, attributes, ComponentAttributes, context.resolution_context.resolve_value)
        )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the declared dataset, with its runner."""
        return build_definitions(self.config)
