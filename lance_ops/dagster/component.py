"""`defs.yaml` declares a dataset: the same keys as in a dataset's own YAML file, under `attributes`.

    type: lance_ops.dagster.component.LanceDatasetComponent
    attributes:
      name: flights
      uri: ${LAKE}/flights.lance

`{{ env.NAME }}` is Dagster's, rendered when definitions load; `${NAME}` is expanded when a run needs it, so that a
secret is in no definition.
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
        """Return the declaration's own model, so that its constraints hold here too."""
        return DatasetConfig

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Render templates and check the declaration again with what they gave."""
        given = attributes.model_dump(exclude_unset=True) if attributes else {}
        return cls(DatasetConfig.model_validate(context.resolution_context.resolve_value(given)))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return what follows from the declaration; `lance_runner` comes from the code location's resources."""
        return build_definitions(self.config)
