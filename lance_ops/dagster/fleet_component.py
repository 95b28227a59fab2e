"""Load a fleet that a `defs.yaml` declares.

type: lance_ops.dagster.LanceFleetComponent
attributes:
  name: lake
  root: ${LAKE}/silver
  budget: {max_megabytes: 50000}
"""

from __future__ import annotations

from typing import Self

import dagster as dg
from pydantic import BaseModel

from lance_ops.dagster.component import NamedComponent
from lance_ops.dagster.declaration import declaration_file, load_attributes, with_templates
from lance_ops.dagster.fleet import FleetConfig, build_fleet_definitions
from lance_ops.dagster.project import FleetScaffolder

__all__ = ["LanceFleetComponent"]


@dg.scaffold_with(FleetScaffolder)
class LanceFleetComponent(NamedComponent[FleetConfig]):
    """All Lance tables beneath a root, maintained every night within a budget."""

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """Return the declaration's model, in which templates may stand for values; `load` checks the rendered ones."""
        return with_templates(FleetConfig)

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Return what `dg list components` shows."""
        return dg.ComponentTypeSpec(
            description="All Lance tables beneath a root: the worst debt is paid first, within a budget a night.",
            tags=["lance", "maintenance"],
        )

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Render the templates, and check the declaration again with the rendered values."""
        config = load_attributes(context.path, attributes, FleetConfig, context.resolution_context.resolve_value)
        return cls(config, declaration_file(context.path))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the declared fleet, with its runner."""
        self.check_is_declared_once(context)
        return build_fleet_definitions(self.config)
