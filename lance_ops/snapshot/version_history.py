"""Iterate over the retained versions of a dataset: their manifests, with or without their transactions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from lance_ops.core.errors import VersionNotFound
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import Manifest
from lance_ops.transactions import CommittedVersion, manifests_newest_first, versions_newest_first

__all__ = ["history", "past_manifests", "snapshot_as_of"]


def history(snapshot: Snapshot, *, to_the_end: bool = False) -> Iterator[CommittedVersion]:
    """Yield the retained versions up to the snapshot's, newest first; see `versions_newest_first`."""
    past = versions_newest_first(snapshot.store, snapshot.committer, to_the_end=to_the_end)
    return (committed for committed in past if committed.version <= snapshot.version)


def past_manifests(snapshot: Snapshot, *, to_the_end: bool = False) -> Iterator[Manifest]:
    """Yield the manifests of the same versions as `history`, without reading transactions."""
    past = manifests_newest_first(snapshot.store, snapshot.committer, to_the_end=to_the_end)
    return (manifest for manifest in past if manifest.version <= snapshot.version)


def snapshot_as_of(snapshot: Snapshot, moment: datetime) -> Snapshot:
    """Return the newest retained version, up to the snapshot's, that is not younger than a moment.

    A moment without a time zone is one of this machine's zone. Raises `VersionNotFound` if no version is that old.
    """
    when = moment.astimezone(UTC)
    for past in past_manifests(snapshot):
        if past.timestamp is not None and past.timestamp <= when:
            return snapshot.with_manifest(past)
    raise VersionNotFound(f"{snapshot.uri}: no retained version is as old as {when.isoformat()}")
