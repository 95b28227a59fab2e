"""Who is measured: one way to write and to open for each, at its defaults.

What `open` returns has `to_table` and `take` in all three, so the measured lines are the same for everyone.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

__all__ = ["Contender", "contender", "size_bytes"]


class Contender(Protocol):
    """Writes tables into folders that are not there yet, and opens them."""

    def write(self, table: pa.Table, folder: Path) -> None: ...

    def open(self, folder: Path) -> Any: ...


@dataclass(frozen=True)
class Lance:
    """Either implementation: their public names are the same."""

    module: ModuleType
    version: str

    def write(self, table: pa.Table, folder: Path) -> None:
        self.module.write_dataset(table, str(folder), data_storage_version=self.version)

    def open(self, folder: Path) -> Any:
        return self.module.dataset(str(folder))


@dataclass(frozen=True)
class Parquet:
    """One file as pyarrow writes it."""

    def write(self, table: pa.Table, folder: Path) -> None:
        folder.mkdir()
        pq.write_table(table, folder / "table.parquet")

    def open(self, folder: Path) -> Any:
        return pads.dataset(folder / "table.parquet", format="parquet")


def contender(name: str, version: str) -> Contender:
    """Import and return one contender, and no other."""
    if name == "parquet":
        return Parquet()
    return Lance(importlib.import_module({"ours": "lance_ops", "pylance": "lance"}[name]), version)


def size_bytes(folder: Path) -> int:
    """Return what the data files of a written folder take; manifests and transactions are not the format's size."""
    data = folder / "data"
    return sum(path.stat().st_size for path in (data if data.exists() else folder).rglob("*") if path.is_file())
