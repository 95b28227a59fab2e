"""The model of declared resources: the attributes of a component, with the fields of the Python classes.

io_manager: {base_uri: "${LAKE}/silver", storage_options: {access_key_id: "${LAKE_KEY}"}}
datasets:
  trips: {uri: "${LAKE}/trips.lance", tag: released}

Texts keep their `${NAME}`. The resources expand it when a run uses them, so that no definition holds a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Self

import dagster as dg
from pydantic import Field, field_validator, model_validator

from lance_ops.dagster.declaration import DeclaredModel, OptionalSection, Options
from lance_ops.dagster.io.dataset_resource import LanceDatasetResource
from lance_ops.dagster.io.io_manager import LanceIOManager
from lance_ops.dagster.io.stored_dataset import WriteMode

__all__ = ["RESOURCES_COMPONENT_TYPE", "DatasetResourceConfig", "IOManagerConfig", "ResourcesConfig", "build_resources"]

RESOURCES_COMPONENT_TYPE = "lance_ops.dagster.LanceResourcesComponent"
"""The `type` of a `defs.yaml` that declares resources."""

_DEFAULT_KEY = "io_manager"
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY_RULE = "the key of a resource has only letters, digits and _, and begins with no digit"


class IOManagerConfig(DeclaredModel):
    """Stores what assets return as Lance datasets, `<base_uri>/<asset key>.lance`, and loads it again."""

    key: str = Field(
        default=_DEFAULT_KEY,
        description="The key of the resource. Assets that name no IO manager use io_manager; for another key, an "
        "asset names it as its io_manager_key.",
    )
    base_uri: str = Field(description="The folder or prefix of the datasets; ${NAME} is expanded by the run.")
    storage_options: Options = Field(
        default_factory=dict, repr=False, description="Options of the object store; ${NAME} as in `base_uri`."
    )
    mode: WriteMode = Field(default="overwrite", description="For assets whose metadata has no write_mode.")
    branch: str | None = Field(
        default=None,
        description="Write this branch of each dataset, as in development. A dataset that lacks the branch is read "
        "from its main branch.",
    )

    @field_validator("key")
    @classmethod
    def _is_key(cls, key: str) -> str:
        if not _KEY.fullmatch(key):
            raise ValueError(_KEY_RULE)
        return key


class DatasetResourceConfig(DeclaredModel):
    """One dataset by its address: the newest version of the main branch or of a branch, or a version, or a tag."""

    uri: str = Field(description="Where the dataset is; ${NAME} is expanded by the run.")
    storage_options: Options = Field(
        default_factory=dict, repr=False, description="Options of the object store; ${NAME} as in `uri`."
    )
    version: int | None = Field(default=None, ge=1, description="Open this version, of the branch if one is given.")
    tag: str | None = Field(default=None, description="Open the version that the tag names.")
    branch: str | None = Field(
        default=None,
        description="Read and write this branch. A write creates it. A dataset that lacks the branch is read from its "
        "main branch.",
    )

    @model_validator(mode="after")
    def _one_version(self) -> Self:
        beside_tag = [name for name in ("version", "branch") if getattr(self, name) is not None]
        if self.tag is not None and beside_tag:
            raise ValueError(
                f"{', '.join(['tag', *beside_tag[:-1]])} and {beside_tag[-1]} are given: give the tag alone, which may "
                "name a version of a branch"
            )
        return self


class ResourcesConfig(DeclaredModel):
    """Declared resources: an IO manager, datasets by name, or both."""

    io_manager: OptionalSection[IOManagerConfig] = Field(
        default=None, description="Where the outputs of assets are stored, and their inputs loaded."
    )
    datasets: dict[str, DatasetResourceConfig] = Field(
        default_factory=dict, description="Datasets that assets open and write, by the key of their resource."
    )

    @field_validator("datasets")
    @classmethod
    def _are_keys(cls, datasets: dict[str, DatasetResourceConfig]) -> dict[str, DatasetResourceConfig]:
        for name in datasets:
            if not _KEY.fullmatch(name):
                raise ValueError(f"{name}: {_KEY_RULE}")
            if name == _DEFAULT_KEY:
                raise ValueError(f"{name}: Dagster stores outputs by the resource of this key: choose another name")
        return datasets

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if self.io_manager is None and not self.datasets:
            raise ValueError("no resource is declared: give io_manager, datasets or both")
        if self.io_manager is not None and self.io_manager.key in self.datasets:
            key = self.io_manager.key
            raise ValueError(
                f"io_manager.key and datasets.{key} have the same name: choose another one for one of them"
            )
        return self

    def attributes(self) -> Iterator[tuple[str, str]]:
        """Yield the key of each resource with the attribute that declares it."""
        if self.io_manager is not None:
            yield self.io_manager.key, "io_manager"
        for name in self.datasets:
            yield name, f"datasets.{name}"


def build_resources(config: ResourcesConfig) -> dict[str, Any]:
    """Return the declared resources by key, with their variables as written."""
    resources: dict[str, dg.ConfigurableResource[Any] | dg.ConfigurableIOManager] = {
        name: LanceDatasetResource(**each.model_dump()) for name, each in config.datasets.items()
    }
    if config.io_manager is not None:
        resources[config.io_manager.key] = LanceIOManager(**config.io_manager.model_dump(exclude={"key"}))
    return resources
