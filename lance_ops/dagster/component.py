"""Load a dataset that a `defs.yaml` declares; `attributes` holds the same keys as a dataset's own YAML file.

    type: lance_ops.dagster.component.LanceDatasetComponent
    attributes:
      name: flights
      uri: ${LAKE}/flights.lance

Dagster renders `{{ env.NAME }}` when it loads definitions. This package expands `${NAME}` when a run needs the value,
so that no definition contains a secret.
"""

from __future__ import annotations

from typing import Self

import dagster as dg
from pydantic import BaseModel

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_definitions

__all__ = ["LanceDatasetComponent"]


class LanceDatasetComponent(dg.Component):
    """A maintained Lance dataset: its assets, checks, jobs, sensors and schedule."""

    def __init__(self, config: DatasetConfig) -> None:
        self.config = config

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """Return the declaration's own model, so that its constraints apply here too."""
        return DatasetConfig

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Render the templates, and check the declaration again with the rendered values."""
        given = attributes.model_dump(exclude_unset=True) if attributes else {}
        return cls(DatasetConfig.model_validate(context.resolution_context.resolve_value(given)))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the declared dataset; the code location's resources must provide `lance_runner`."""
        return build_definitions(self.config)
