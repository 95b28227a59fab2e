"""Open a version of a declared dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lance_ops.core.errors import CorruptFile, LanceOpsError
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.maintenance.repair import open_newest_readable
from lance_ops.snapshot import Snapshot
from lance_ops.store import with_short_timeouts

__all__ = ["OpenNewest", "open_for_run", "open_readable", "open_snapshot", "open_to_look", "opening_once"]

OpenNewest: TypeAlias = Callable[[], Snapshot | None]
"""Does what `open_to_look` does for one dataset."""


def open_snapshot(config: DatasetConfig, version: int | None = None) -> Snapshot:
    """Open a version, the newest by default; raises what `Snapshot.open` raises."""
    location = config.table()
    return Snapshot.open(location.uri, version, location.storage_options)


def open_readable(config: DatasetConfig) -> Snapshot:
    """Open the newest version, or the newest one that can be read if the newest manifest is damaged."""
    try:
        return open_snapshot(config)
    except CorruptFile:
        location = config.table()
        return open_newest_readable(location.uri, location.storage_options)


def open_to_look(config: DatasetConfig) -> Snapshot | None:
    """Open the newest version to look at it; return None if the dataset does not exist.

    A store that does not answer is given up within a minute, because a tick may not take longer.
    """
    location = config.table()
    return Snapshot.open_if_exists(location.uri, with_short_timeouts(location.uri, location.storage_options))


def opening_once(config: DatasetConfig) -> OpenNewest:
    """Return what opens the newest version when it is first called.

    Later calls get that version, or that `LanceOpsError`.
    """
    opened: list[Snapshot | LanceOpsError | None] = []

    def open_newest() -> Snapshot | None:
        if not opened:
            try:
                opened.append(open_to_look(config))
            except LanceOpsError as error:
                opened.append(error)
        if isinstance(opened[0], LanceOpsError):
            raise opened[0]
        return opened[0]

    return open_newest


def open_for_run(config: DatasetConfig) -> Snapshot | None:
    """Open the newest version for a run that writes, with the declared patience; return None if it does not exist."""
    location = config.table()
    return Snapshot.open_if_exists(location.uri, location.storage_options)
