"""Delete rows by predicate: find them fragment by fragment, write new deletion vectors, commit.

    plan_deletion(snapshot, predicate) -> DeletionPlan       pure: which fragments each task looks at
    find_rows(task) -> FoundRows                             anywhere: the offsets that match
    commit_deletion(plan, found) -> Snapshot                 deletion files and one transaction

Each fragment's deletion file holds its whole cumulative vector; a fragment without a live row left leaves the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyroaring import BitMap

from lance_ops.core.addresses import fragment_of, offset_of
from lance_ops.core.names import new_deletion_file_id
from lance_ops.core.predicate import Predicate
from lance_ops.core.schema import Schema
from lance_ops.snapshot.commit import commit_operation, removing_on_failure
from lance_ops.snapshot.ordered import map_ordered
from lance_ops.snapshot.reference import SnapshotReference
from lance_ops.snapshot.runners import Runner
from lance_ops.snapshot.scan import ROW_ADDRESS, TASK_READAHEAD, ScanRequest, scan
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import Fragment, encode_deletion_vector
from lance_ops.transactions import Delete

__all__ = ["DeletionPlan", "DeletionTask", "FoundRows", "commit_deletion", "delete", "find_rows", "plan_deletion"]

_FRAGMENTS_PER_TASK = 16
_MAX_TASKS = 64
_WRITES_AT_ONCE = 16


@dataclass(frozen=True)
class DeletionTask:
    """Fragments of one version in which to look for rows."""

    snapshot: SnapshotReference
    predicate: Predicate
    fragment_ids: tuple[int, ...]


@dataclass(frozen=True)
class DeletionPlan:
    """A deletion of `predicate` as of the snapshot's version."""

    snapshot: Snapshot
    predicate: Predicate
    tasks: tuple[DeletionTask, ...]


@dataclass(frozen=True)
class FoundRows:
    """Live rows that match: per fragment, a serialized Roaring bitmap of their physical offsets."""

    offsets: Mapping[int, bytes]

    @property
    def num_rows(self) -> int:
        """How many rows match."""
        return sum(len(BitMap.deserialize(data)) for data in self.offsets.values())


def delete(
    snapshot: Snapshot, predicate: Predicate, runner: Runner, properties: Mapping[str, str] | None = None
) -> tuple[Snapshot, int]:
    """Delete the matching rows; return the new snapshot and how many rows went.

    When no row matches nothing is committed. Raises `RetryableConflict` when a concurrent commit touched the same
    rows: plan again on the newest version.
    """
    plan = plan_deletion(snapshot, predicate)
    return commit_deletion(plan, runner.map(find_rows, plan.tasks), properties)


def plan_deletion(snapshot: Snapshot, predicate: Predicate) -> DeletionPlan:
    """Split the fragments among tasks, not too many of them: elsewhere, each opens the version anew."""
    ids = [fragment.id for fragment in snapshot.fragments]
    share = max(_FRAGMENTS_PER_TASK, -(-len(ids) // _MAX_TASKS))
    tasks = tuple(
        DeletionTask(SnapshotReference.of(snapshot), predicate, tuple(ids[at : at + share]))
        for at in range(0, len(ids), share)
    )
    return DeletionPlan(snapshot, predicate, tasks)


def find_rows(task: DeletionTask) -> FoundRows:
    """Return the live rows of the task's fragments for which the predicate is true."""
    request = ScanRequest(
        Schema(()),
        task.predicate,
        with_row_address=True,
        fragment_ids=task.fragment_ids,
        readahead=TASK_READAHEAD,
    )
    found: dict[int, BitMap] = {}
    for table in scan(task.snapshot.open(), request):  # a table never spans two fragments
        addresses = table.column(ROW_ADDRESS).to_numpy()
        found.setdefault(int(fragment_of(addresses[0])), BitMap()).update(offset_of(addresses).astype("uint32"))
    return FoundRows({fragment_id: offsets.serialize() for fragment_id, offsets in found.items()})


def commit_deletion(
    plan: DeletionPlan, found: Sequence[FoundRows], properties: Mapping[str, str] | None = None
) -> tuple[Snapshot, int]:
    """Write the deletion files and commit; see `delete`."""
    snapshot = plan.snapshot
    offsets = {
        fragment_id: BitMap.deserialize(data) for outcome in found for fragment_id, data in outcome.offsets.items()
    }
    if not offsets:
        return snapshot, 0
    predicate = plan.predicate.to_sql()
    written: list[str] = []

    def delete_in(fragment_id: int) -> Fragment | None:
        """Write the fragment's cumulative vector and return it as it is then, None if no row is left."""
        fragment = snapshot.fragments_by_id[fragment_id]
        vector = snapshot.deletion_vector(fragment) | offsets[fragment_id]
        if len(vector) == fragment.physical_rows:
            return None
        deletion_file, data = encode_deletion_vector(vector, snapshot.version, new_deletion_file_id())
        thinned = replace(fragment, deletion_file=deletion_file)
        assert thinned.deletion_path is not None
        written.append(thinned.deletion_path)  # first, because a put that fails may have put it there
        snapshot.store.put(thinned.deletion_path, data)
        return thinned

    ids = sorted(offsets)
    with removing_on_failure(snapshot.store, written):
        outcomes = dict(zip(ids, map_ordered(delete_in, ids, _WRITES_AT_ONCE, _WRITES_AT_ONCE), strict=True))
    updated = tuple(fragment for fragment in outcomes.values() if fragment is not None)
    removed = tuple(fragment_id for fragment_id, fragment in outcomes.items() if fragment is None)
    operation = Delete(updated, removed, predicate)
    committed = commit_operation(snapshot, operation, properties=properties, own_files=written)
    return committed, sum(len(rows) for rows in offsets.values())
