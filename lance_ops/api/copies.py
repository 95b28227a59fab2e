"""Copies of a dataset, and the places its files are in."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Self

from lance_ops.api.handle import Handle
from lance_ops.api.tags import Reference, resolve_reference
from lance_ops.snapshot.clone import deep_clone, shallow_clone
from lance_ops.table import BasePath

__all__ = ["Copies"]


class Copies(Handle):
    """The methods of `LanceDataset` that copy it."""

    def base_paths(self) -> dict[int, BasePath]:
        """Return the places outside of the root that files of this version may be in, by id."""
        return {base.id: base for base in self._snapshot.manifest.base_paths}

    def shallow_clone(
        self,
        target_path: str | PathLike[str],
        reference: Reference,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Begin a dataset at `target_path` that reads this one's files of a version, and return a handle on it.

        Tag the version to keep clean-up from the files. Raises `DatasetAlreadyExists`.
        """
        source = self._snapshot.at(resolve_reference(self._snapshot, reference))
        return type(self)(shallow_clone(source, fspath(target_path), storage_options))

    def deep_clone(
        self,
        target_path: str | PathLike[str],
        reference: Reference,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Copy the files of a version into a new dataset at `target_path`, and return a handle on it.

        Raises `DatasetAlreadyExists`.
        """
        source = self._snapshot.at(resolve_reference(self._snapshot, reference))
        return type(self)(deep_clone(source, fspath(target_path), storage_options))
