"""Iterate over the retained versions of a dataset: their manifests, with or without their transactions."""

from __future__ import annotations

from collections.abc import Iterator

from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import Manifest
from lance_ops.transactions import CommittedVersion, manifests_newest_first, versions_newest_first

__all__ = ["history", "past_manifests"]


def history(snapshot: Snapshot) -> Iterator[CommittedVersion]:
    """Yield the retained versions up to the snapshot's, newest first; see `versions_newest_first`."""
    past = versions_newest_first(snapshot.store, snapshot.committer)
    return (committed for committed in past if committed.version <= snapshot.version)


def past_manifests(snapshot: Snapshot, *, to_the_end: bool = False) -> Iterator[Manifest]:
    """Yield the manifests of the same versions as `history`, without reading transactions."""
    past = manifests_newest_first(snapshot.store, snapshot.committer, to_the_end=to_the_end)
    return (manifest for manifest in past if manifest.version <= snapshot.version)
