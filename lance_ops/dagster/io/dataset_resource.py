"""A Lance dataset as a Dagster resource: an asset opens it and writes it by name, wherever it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.dagster.declaration import expand, expand_all, expand_location
from lance_ops.dagster.io.stored_dataset import StoredDataset, WriteMode

__all__ = ["LanceDatasetResource"]


class LanceDatasetResource(dg.ConfigurableResource[LanceDataset]):
    """One dataset, or one version of it. The fields may hold `${NAME}`, which is expanded at use."""

    uri: str
    storage_options: dict[str, str] = Field(default_factory=dict, repr=False)
    version: int | None = Field(default=None, description="Open this version, of the branch if one is given.")
    tag: str | None = Field(default=None, description="Open the version that the tag names.")
    branch: str | None = Field(
        default=None,
        description="Read and write this branch. A write creates it. A dataset that lacks the branch is read from its "
        "main branch.",
    )

    def open(self) -> LanceDataset:
        """Open the version that the fields name, by default the newest one.

        Raises `DatasetNotFound`, `VersionNotFound` and `ReferenceNotFound`, and `InvalidInput` for a version and a tag.
        """
        return self._stored().open(self.version, self.tag)

    def write(self, data: Any, mode: WriteMode = "overwrite", keys: Sequence[str] = ()) -> LanceDataset:
        """Write Arrow data or a data frame as one version, and return it; `upsert` updates and inserts by `keys`.

        Raises `InvalidInput` if the resource is pinned to a version or a tag, and `SchemaMismatch` for data that does
        not fit.
        """
        if self.version is not None or self.tag is not None:
            raise InvalidInput(f"{self.uri}: the resource is pinned to a version: write by one without version and tag")
        return self._stored().write(data, mode, keys).dataset

    def _stored(self) -> StoredDataset:
        return StoredDataset(
            expand_location(self.uri, "uri"),
            expand_all(self.storage_options, "storage_options"),
            None if self.branch is None else expand(self.branch, "branch"),
        )
