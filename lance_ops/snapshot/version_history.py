"""Iterate over the retained versions of a dataset: with their transactions, or their summaries alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from lance_ops.core.errors import VersionNotFound
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import VersionSummary
from lance_ops.transactions import (
    CommittedVersion,
    manifests_newest_first,
    summaries_newest_first,
    versions_newest_first,
)

__all__ = ["history", "snapshot_as_of", "version_summaries"]


def history(snapshot: Snapshot, *, to_the_end: bool = False) -> Iterator[CommittedVersion]:
    """Yield the retained versions up to the snapshot's, newest first; see `versions_newest_first`."""
    return versions_newest_first(snapshot.store, snapshot.committer, up_to=snapshot.version, to_the_end=to_the_end)


def version_summaries(snapshot: Snapshot) -> Iterator[VersionSummary]:
    """Yield a summary of each version that `history` yields. Only these fields of a manifest are decoded."""
    past = summaries_newest_first(snapshot.store, snapshot.committer)
    return (summary for summary in past if summary.version <= snapshot.version)


def snapshot_as_of(snapshot: Snapshot, moment: datetime) -> Snapshot:
    """Return the newest retained version, up to the snapshot's, that is not younger than a moment.

    A moment without a time zone is one of this machine's zone. Raises `VersionNotFound` if no version is that old.
    """
    when = moment.astimezone(UTC)
    for past in manifests_newest_first(snapshot.store, snapshot.committer):
        if past.version <= snapshot.version and past.timestamp is not None and past.timestamp <= when:
            return snapshot.with_manifest(past)
    raise VersionNotFound(f"{snapshot.uri}: no retained version is as old as {when.isoformat()}")
