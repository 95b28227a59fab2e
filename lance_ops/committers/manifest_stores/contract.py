"""The interface of an external manifest store: a table with the path of the manifest of each version of a dataset.

It decides who makes a version, for object stores that cannot. A row is inserted once, naming a staged manifest, and
replaced once, when the manifest has its final name; the rows of removed versions stay, so that no stale writer can make
such a version again. They go when the dataset is removed whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Self

from lance_ops.core.records import dataclass

__all__ = ["ManifestRow", "ManifestStore", "padded"]

_DIGITS = 20


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """`path` is relative to the dataset's root."""

    version: int
    path: str
    size_bytes: int


class ManifestStore(ABC):
    """The rows of one dataset. Picklable, and fork-safe: connections belong to the process that made them.

    Every method raises `StoreError` when the store fails, without showing a password, and reads are consistent: they
    see every write that was answered before.
    """

    @classmethod
    @abstractmethod
    def open(cls, url: str, dataset_uri: str, storage_options: Mapping[str, object]) -> Self:
        """Return the store for one dataset, without connecting to it yet.

        Raises `InvalidInput` for a URL that does not name a store, without showing any part of it behind the scheme,
        and `MissingPackage` if a package for it is missing.
        """

    @abstractmethod
    def newest(self) -> ManifestRow | None:
        """Return the row of the greatest version."""

    @abstractmethod
    def get(self, version: int) -> ManifestRow | None:
        """Return a version's row."""

    @abstractmethod
    def insert(self, row: ManifestRow) -> bool:
        """Insert a row; return False and change nothing if the version has one.

        Raises `WriteRefused` when nothing was written and nothing will appear later, another `StoreError` when that is
        not known.
        """

    @abstractmethod
    def replace(self, row: ManifestRow) -> None:
        """Replace a version's row. Raises `StoreError`, and makes no row, if the version has none."""

    @abstractmethod
    def remove(self, version: int) -> None:
        """Remove a version's row if it exists; another may be inserted afterwards."""


def padded(version: int) -> str:
    """Return a version as text that sorts like the number."""
    return f"{version:0{_DIGITS}d}"
