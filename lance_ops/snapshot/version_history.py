"""The versions of a dataset and the transactions that made them."""

from __future__ import annotations

from collections.abc import Iterator

from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.transactions import CommittedVersion, versions_newest_first

__all__ = ["history"]


def history(snapshot: Snapshot) -> Iterator[CommittedVersion]:
    """Yield the retained versions up to this snapshot's, newest first."""
    past = versions_newest_first(snapshot.store, snapshot.committer)
    return (landed for landed in past if landed.version <= snapshot.version)
