"""Load resources that a `defs.yaml` declares.

type: lance_ops.dagster.LanceResourcesComponent
attributes:
  io_manager: {base_uri: "${LAKE}/silver"}
  datasets:
    trips: {uri: "${LAKE}/trips.lance", tag: released}
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import dagster as dg
from pydantic import BaseModel

from lance_ops.core.errors import ConfigError
from lance_ops.dagster.declaration import declaration_file, load_attributes, with_templates
from lance_ops.dagster.io import ResourcesConfig, build_resources
from lance_ops.dagster.project import ResourcesScaffolder

__all__ = ["LanceResourcesComponent"]


@dg.scaffold_with(ResourcesScaffolder)
class LanceResourcesComponent(dg.Component):
    """Lance datasets as resources: an IO manager that stores outputs, and datasets that assets open by name."""

    def __init__(self, config: ResourcesConfig, path: Path) -> None:
        self.config = config
        self.path = path

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """Return the declaration's model, in which templates may stand for values; `load` checks the rendered ones."""
        return with_templates(ResourcesConfig)

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Return what `dg list components` shows."""
        return dg.ComponentTypeSpec(
            description="Lance datasets as resources: an IO manager, and datasets that assets open by name.",
            tags=["lance", "io"],
        )

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Render the templates, and check the declaration again with the rendered values."""
        render = context.resolution_context.resolve_value
        config = load_attributes(context.path, attributes, ResourcesConfig, render)
        return cls(config, declaration_file(context.path))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the resources; raise `ConfigError` for a key that another declaration of the project has given."""
        declared: dict[str, Path] = {}
        for each in context.component_tree.get_all_components(LanceResourcesComponent):
            if each is self:
                break
            declared |= {key: each.path for key, _ in each.config.attributes()}
        for key, attribute in self.config.attributes():
            if key in declared:
                raise ConfigError(
                    f"{self.path}: attributes.{attribute}: the resource {key} is already declared in {declared[key]}: "
                    "choose another name"
                )
        return dg.Definitions(resources=build_resources(self.config))
