"""Iterate over the retained versions of a dataset, each with its manifest and transaction."""

from __future__ import annotations

from collections.abc import Iterator

from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.transactions import CommittedVersion, versions_newest_first

__all__ = ["history"]


def history(snapshot: Snapshot, *, to_the_end: bool = False) -> Iterator[CommittedVersion]:
    """Yield the retained versions up to the snapshot's, newest first; see `versions_newest_first`."""
    past = versions_newest_first(snapshot.store, snapshot.committer, to_the_end=to_the_end)
    return (committed for committed in past if committed.version <= snapshot.version)
