"""Delete rows by predicate: find them fragment by fragment, write new deletion files, commit.

    plan_deletion(snapshot, predicate) -> DeletionPlan       searches indices, and shares the rows among tasks
    find_rows(task) -> FoundOffsets                          anywhere: the offsets of matching rows
    commit_deletion(plan, found) -> new snapshot, number     deletion files, many of them by tasks; one transaction

A deletion file has all deleted rows of its fragment, earlier ones too. A fragment without a live row leaves the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyroaring import BitMap

from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.reading import scan_rows
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table.rows import join_bitmaps
from lance_ops.transactions import Delete
from lance_ops.writing import TaskShare, commit_operation, share_rows, write_deletion_files

__all__ = [
    "DeletionPlan",
    "DeletionTask",
    "FoundOffsets",
    "commit_deletion",
    "delete",
    "find_rows",
    "plan_deletion",
    "truncate",
]


@dataclass(frozen=True)
class DeletionTask:
    """Rows of one version among which to look for those that match."""

    snapshot: SnapshotReference
    share: TaskShare


@dataclass(frozen=True)
class DeletionPlan:
    """A deletion of `predicate` as of the snapshot's version."""

    snapshot: Snapshot
    predicate: Predicate
    tasks: tuple[DeletionTask, ...]

    @property
    def job(self) -> Job:
        """What the tasks do together, each weighed by the bytes of its rows."""
        job = Job.on("delete", self.snapshot.uri, self.snapshot.version)
        return job.in_bytes(task.share.size_bytes for task in self.tasks)


@dataclass(frozen=True)
class FoundOffsets:
    """Live rows that match: for each fragment, a serialized Roaring bitmap of physical offsets."""

    offsets: Mapping[int, bytes]

    @property
    def num_rows(self) -> int:
        """How many rows match."""
        return sum(len(BitMap.deserialize(data)) for data in self.offsets.values())


def delete(
    snapshot: Snapshot, predicate: Predicate, runner: Runner, properties: Mapping[str, str] | None = None
) -> tuple[Snapshot, int]:
    """Delete the matching rows; return the new snapshot and the number of deleted rows.

    If no row matches, nothing is committed. Raises `RetryableConflict` when a concurrent transaction touched the same
    rows: plan again on the newest version.
    """
    plan = plan_deletion(snapshot, predicate)
    return commit_deletion(plan, runner.map(find_rows, plan.tasks, plan.job), properties, runner)


def truncate(snapshot: Snapshot, properties: Mapping[str, str] | None = None) -> Snapshot:
    """Remove every fragment without reading a row; return the same snapshot if there is none."""
    if not snapshot.fragments:
        return snapshot
    operation = Delete((), tuple(fragment.id for fragment in snapshot.fragments), "true")
    return commit_operation(snapshot, operation, properties=properties)


def plan_deletion(snapshot: Snapshot, predicate: Predicate) -> DeletionPlan:
    """Share the rows that may match among tasks; raise as `share_rows` does."""
    reference = SnapshotReference.of(snapshot)
    tasks = tuple(DeletionTask(reference, share) for share in share_rows(snapshot, predicate))
    return DeletionPlan(snapshot, predicate, tasks)


def find_rows(task: DeletionTask) -> FoundOffsets:
    """Return the live rows of the task's share for which the predicate is true."""
    snapshot = task.snapshot.open()
    found: dict[int, BitMap] = {}
    for rows in scan_rows(snapshot, task.share.request(snapshot, Schema(()))):
        found.setdefault(rows.fragment.id, BitMap()).update(rows.bitmap())
    return FoundOffsets({fragment_id: offsets.serialize() for fragment_id, offsets in found.items()})


def commit_deletion(
    plan: DeletionPlan,
    found: Sequence[FoundOffsets],
    properties: Mapping[str, str] | None = None,
    runner: Runner | None = None,
) -> tuple[Snapshot, int]:
    """Write the deletion files, by `runner` as `write_deletion_files` does, and commit; see `delete`."""
    snapshot, offsets = plan.snapshot, join_bitmaps(each.offsets for each in found)
    if not offsets:
        return snapshot, 0
    deletions = write_deletion_files(snapshot, offsets, runner)
    operation = Delete(deletions.updated_fragments, deletions.removed_fragment_ids, plan.predicate.to_sql())
    committed = commit_operation(snapshot, operation, properties=properties, pending=deletions.pending)
    return committed, sum(len(rows) for rows in offsets.values())
