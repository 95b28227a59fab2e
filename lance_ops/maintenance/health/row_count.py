"""Count the rows that match a filter by tasks, of which each returns one number."""

from __future__ import annotations

from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.reading import scan_rows
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.writing import TaskShare, share_rows

__all__ = ["RowCount", "count_rows"]


@dataclass(frozen=True)
class RowCount:
    """Counts the matching rows of a share; only the filter's columns are read."""

    snapshot: SnapshotReference

    def __call__(self, share: TaskShare) -> int:
        """Return the number of rows."""
        snapshot = self.snapshot.open()
        return sum(len(rows) for rows in scan_rows(snapshot, share.request(snapshot, Schema(()))))


def count_rows(snapshot: Snapshot, predicate: Predicate | None, runner: Runner) -> int:
    """Return the number of live rows that match; without a predicate the manifest says it, and no task runs.

    Indices are searched once, before tasks. Raises `ReadTooLarge` as `share_rows` does.
    """
    if predicate is None:
        return snapshot.num_rows
    shares = share_rows(snapshot, predicate)
    job = Job.on("count rows of", snapshot.uri, snapshot.version).in_bytes(share.size_bytes for share in shares)
    return sum(runner.map(RowCount(SnapshotReference.of(snapshot)), shares, job))
