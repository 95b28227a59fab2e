"""Count what the manifest does not tell: versions that may go, files that no version names, and growth."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from lance_ops.core.errors import UnsupportedFeature, VersionNotFound
from lance_ops.core.file_names import VERSIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.maintenance.cleanup import CleanupOptions, begin_held_versions, explain_cleanup_old_versions
from lance_ops.snapshot import Snapshot
from lance_ops.store import ObjectInfo

__all__ = ["Growth", "Inventory", "count_removable_versions", "take_inventory"]

_GROWTH_WINDOW = timedelta(days=7)
_SHORTEST = timedelta(hours=1)
"""A rate of growth over less than this would tell nothing about a day."""


@dataclass(frozen=True)
class Growth:
    """How much a table grew on average, for each day since `since`."""

    since: datetime
    rows_per_day: float
    bytes_per_day: float


@dataclass(frozen=True)
class Inventory:
    """What lies beneath a table's root.

    A version's age is that of its manifest's object, as one listing tells it. The present is by this process's clock,
    because to ask a store for its time may write there. Clean-up goes by the store's clock. `removable_manifest_bytes`
    counts the manifests of the removable versions, and not the data files that only those versions name.
    `orphan_bytes` is None if files were not listed, and if a version has a feature that this release cannot write:
    nobody can tell then which files it names.
    """

    num_versions: int
    num_removable_versions: int
    removable_manifest_bytes: int
    growth: Growth | None = None
    orphan_bytes: int | None = None


def take_inventory(
    snapshot: Snapshot, cleanup: CleanupOptions, now: datetime | None = None, *, orphans: bool = False
) -> Inventory:
    """List the versions, tags, pins and branches, and read one older manifest; with `orphans`, list all files too."""
    infos = _listed_versions(snapshot)
    removable = _removable(snapshot, cleanup, infos, datetime.now(UTC) if now is None else now)
    return Inventory(
        num_versions=len(infos),
        num_removable_versions=len(removable),
        removable_manifest_bytes=sum(info.size_bytes for info in removable),
        growth=_growth(snapshot, infos),
        orphan_bytes=_orphan_bytes(snapshot) if orphans else None,
    )


def count_removable_versions(snapshot: Snapshot, cleanup: CleanupOptions) -> int:
    """Return the `num_removable_versions` of `take_inventory`. No manifest is read."""
    return len(_removable(snapshot, cleanup, _listed_versions(snapshot), datetime.now(UTC)))


def _listed_versions(snapshot: Snapshot) -> list[tuple[int, ObjectInfo | None]]:
    """Return the versions, newest first, each with its manifest's object if the listing has it."""
    listed = {info.path: info for info in snapshot.store.list(VERSIONS_DIR)}
    versions = sorted(snapshot.committer.versions(), reverse=True)
    return [(version, listed.get(snapshot.committer.location(version))) for version in versions]


def _removable(
    snapshot: Snapshot, cleanup: CleanupOptions, infos: Sequence[tuple[int, ObjectInfo | None]], now: datetime
) -> list[ObjectInfo]:
    held = begin_held_versions(snapshot, cleanup)(now)
    return [
        info
        for rank, (version, info) in enumerate(infos)
        if info is not None and version not in held and cleanup.may_remove(version, rank, info.modified, now)
    ]


def _orphan_bytes(snapshot: Snapshot) -> int | None:
    with suppress(UnsupportedFeature):
        return explain_cleanup_old_versions(snapshot, CleanupOptions(versions=())).stats.bytes_removed
    return None


def _growth(snapshot: Snapshot, infos: Sequence[tuple[int, ObjectInfo | None]]) -> Growth | None:
    """Compare with the oldest retained version of the last week."""
    newest = snapshot.manifest.timestamp
    if newest is None:
        return None
    recent = [
        version
        for version, info in infos
        if version < snapshot.version and info is not None and info.modified >= newest - _GROWTH_WINDOW
    ]
    with suppress(VersionNotFound, IndexError):  # clean-up removed it, or there is none
        past = snapshot.at(recent[-1])
        began = past.manifest.timestamp
        if began is not None and newest - began >= _SHORTEST:
            days = (newest - began) / timedelta(days=1)
            grown = snapshot.size_bytes - past.size_bytes
            return Growth(began, (snapshot.num_rows - past.num_rows) / days, grown / days)
    return None
