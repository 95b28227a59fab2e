"""The contenders: each library's way to write and to open a table, at its defaults.

`open` of all three returns an object with `to_table` and `take`, so the measured code is the same for all.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

__all__ = ["MODULES", "Contender", "contender", "size_bytes", "sync_all"]

MODULES = {"ours": "lance_ops", "pylance": "lance"}
"""What a program that uses a contender imports."""


class Contender(Protocol):
    """Writes tables into folders that are not there yet, and opens them."""

    @property
    def syncs(self) -> bool:
        """Whether the files survive a power cut once `write` has returned."""
        ...

    def write(self, table: pa.Table, folder: Path) -> None: ...

    def open(self, folder: Path) -> Any: ...


@dataclass(frozen=True)
class Lance:
    """Either implementation: their public names are the same."""

    module: ModuleType
    version: str
    syncs: bool

    def write(self, table: pa.Table, folder: Path) -> None:
        self.module.write_dataset(table, str(folder), data_storage_version=self.version)

    def open(self, folder: Path) -> Any:
        return self.module.dataset(str(folder))


@dataclass(frozen=True)
class Parquet:
    """A single Parquet file, written by pyarrow with its defaults."""

    syncs: bool = False

    def write(self, table: pa.Table, folder: Path) -> None:
        folder.mkdir()
        pq.write_table(table, folder / "table.parquet")

    def open(self, folder: Path) -> Any:
        return pads.dataset(folder / "table.parquet", format="parquet")


def contender(name: str, version: str) -> Contender:
    """Import one contender and return it; the others are not imported."""
    if name == "parquet":
        return Parquet()
    return Lance(importlib.import_module(MODULES[name]), version, syncs=name == "ours")


def sync_all(folder: Path) -> None:
    """Sync every file and folder written, and the name of the folder itself."""
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in (*files, *reversed(folders), folder.parent):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def size_bytes(folder: Path) -> int:
    """Return the bytes of a folder's data files. Manifests and transactions do not count."""
    data = folder / "data"
    return sum(path.stat().st_size for path in (data if data.exists() else folder).rglob("*") if path.is_file())
