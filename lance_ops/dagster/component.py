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

from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import dagster as dg
from pydantic import BaseModel

from lance_ops.core.errors import ConfigError
from lance_ops.dagster.declaration import (
    ONE_TABLE,
    ComponentAttributes,
    DatasetConfig,
    DatasetNames,
    declaration_file,
    load_attributes,
    with_templates,
)
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.fleet import FleetConfig
from lance_ops.dagster.project import DatasetScaffolder

__all__ = ["LanceDatasetComponent", "NamedComponent"]

C = TypeVar("C", bound=ComponentAttributes | FleetConfig)


class NamedComponent(dg.Component, Generic[C]):
    """A dataset or a fleet. Its assets and jobs take its name, so a project may declare each name only once.

    A project may declare each table in only one dataset.
    """

    def __init__(self, config: C, path: Path | None = None) -> None:
        """Take a declaration, and the file that has it if it is not Python."""
        self.config = config
        self.path = path

    def check_is_declared_once(self, context: dg.ComponentLoadContext) -> None:
        """Raise `ConfigError` if an earlier component has jobs of the same names, or is a dataset of the same table."""
        own = DatasetNames(self.config.name)
        dataset = self.config if isinstance(self.config, DatasetConfig) else None
        named: Any = (
            NamedComponent  # the signature refuses an abstract class, with which Dagster only calls `isinstance`
        )
        for each in context.component_tree.get_all_components(named):
            if each is self:
                return
            other = DatasetNames(each.config.name)
            declared, before = (each.path or "Python" for each in (self, each))
            if other.identifier == own.identifier:
                same = "is" if other == own else f"gives jobs the names of {other.name}, which is"
                raise ConfigError(
                    f"{declared}: attributes.name: {own.name} {same} already declared in {before}: choose another name"
                )
            if dataset and isinstance(each.config, DatasetConfig) and dataset.shares_table_with(each.config):
                raise ConfigError(
                    f"{declared}: attributes.uri: it is the table of {other.name} in {before}: {ONE_TABLE}"
                )


@dg.scaffold_with(DatasetScaffolder)
class LanceDatasetComponent(NamedComponent[ComponentAttributes]):
    """A maintained Lance dataset: its assets, checks, jobs, sensors and schedule."""

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
        render = context.resolution_context.resolve_value
        config = load_attributes(context.path, attributes, ComponentAttributes, render)
        return cls(config, declaration_file(context.path))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the declared dataset, with its runner."""
        self.check_is_declared_once(context)
        return build_definitions(self.config)
