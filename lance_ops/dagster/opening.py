"""Open a version of a declared dataset."""

from __future__ import annotations

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.snapshot import Snapshot

__all__ = ["open_if_exists", "open_snapshot"]


def open_snapshot(config: DatasetConfig, version: int | None = None) -> Snapshot:
    """Open a version, the newest by default; raises what `Snapshot.open` raises."""
    location = config.table()
    return Snapshot.open(location.uri, version, location.storage_options)


def open_if_exists(config: DatasetConfig) -> Snapshot | None:
    """Open the newest version; return None if no batch has created the dataset yet."""
    location = config.table()
    return Snapshot.open_if_exists(location.uri, location.storage_options)
