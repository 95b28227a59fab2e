"""Delete rows by predicate: find them fragment by fragment, write new deletion vectors, commit.

    plan_deletion(snapshot, predicate) -> DeletionPlan       pure: which fragments each task looks at
    find_rows(task) -> FoundRows                             anywhere: the offsets that match
    commit_deletion(plan, found) -> Snapshot                 deletion files and one transaction

Each fragment's deletion file holds its whole cumulative vector; a fragment without a live row left leaves the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyroaring import BitMap

from lance_ops.core.addresses import offset_of
from lance_ops.core.names import DELETIONS_DIR, new_deletion_file_id
from lance_ops.core.predicate import Predicate
from lance_ops.core.schema import Schema
from lance_ops.snapshot.commit import commit_operation
from lance_ops.snapshot.runners import Runner
from lance_ops.snapshot.scan import ROW_ADDRESS, ScanRequest, scan
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import DeletionFile, Fragment, encode_deletion_vector
from lance_ops.transactions import Delete

__all__ = ["DeletionPlan", "DeletionTask", "FoundRows", "commit_deletion", "delete", "find_rows", "plan_deletion"]

_FRAGMENTS_PER_TASK = 16


@dataclass(frozen=True)
class DeletionTask:
    """Fragments of one version in which to look for rows."""

    uri: str
    version: int
    predicate: Predicate
    fragment_ids: tuple[int, ...]
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


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
    """Split the fragments among tasks."""
    ids = [fragment.id for fragment in snapshot.fragments]
    tasks = tuple(
        DeletionTask(
            snapshot.uri,
            snapshot.version,
            predicate,
            tuple(ids[at : at + _FRAGMENTS_PER_TASK]),
            snapshot.storage_options,
        )
        for at in range(0, len(ids), _FRAGMENTS_PER_TASK)
    )
    return DeletionPlan(snapshot, predicate, tasks)


def find_rows(task: DeletionTask) -> FoundRows:
    """Return the live rows of the task's fragments for which the predicate is true."""
    snapshot = Snapshot.open(task.uri, task.version, task.storage_options)
    found = {}
    for fragment_id in task.fragment_ids:
        request = ScanRequest(
            Schema(()), task.predicate, with_row_address=True, fragment_ids=(fragment_id,), use_scalar_index=True
        )
        offsets = BitMap()
        for table in scan(snapshot, request):
            offsets.update(offset_of(table.column(ROW_ADDRESS).to_numpy()).astype("uint32"))
        if offsets:
            found[fragment_id] = offsets.serialize()
    return FoundRows(found)


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
    updated: list[Fragment] = []
    removed: list[int] = []
    written: list[str] = []
    for fragment_id, rows in sorted(offsets.items()):
        fragment = snapshot.fragments_by_id[fragment_id]
        vector = snapshot.deletion_vector(fragment) | rows
        if len(vector) == fragment.physical_rows:
            removed.append(fragment_id)
            continue
        deletion_file = write_deletion_file(snapshot.store, fragment_id, snapshot.version, vector)
        written.append(f"{DELETIONS_DIR}/{deletion_file.name(fragment_id)}")
        updated.append(replace(fragment, deletion_file=deletion_file))
    operation = Delete(tuple(updated), tuple(removed), plan.predicate.to_sql())
    committed = commit_operation(snapshot, operation, properties=properties, own_files=written)
    return committed, sum(len(rows) for rows in offsets.values())


def write_deletion_file(store: Store, fragment_id: int, read_version: int, vector: BitMap) -> DeletionFile:
    """Write a fragment's cumulative deletion vector and return what a manifest says of it."""
    deletion_file, data = encode_deletion_vector(vector, read_version, new_deletion_file_id())
    store.put(f"{DELETIONS_DIR}/{deletion_file.name(fragment_id)}", data)
    return deletion_file
