"""Update columns of matching rows: write the rows into new fragments, delete the old rows, in one commit.

    plan_update(snapshot, assignments, predicate) -> UpdatePlan    searches indices, and shares the rows among tasks
    rewrite_rows(task) -> RewrittenRows                            anywhere: new fragments, and the rows they replace
    commit_update(plan, outcomes) -> new snapshot, number          deletion files, many by tasks; one transaction

The rows get new addresses. In a table of stable row ids they keep their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_ops.blobs import scan_to_rewrite
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.predicate import Assignment, Predicate, parse_assignment
from lance_ops.core.records import dataclass
from lance_ops.core.schema import split_path
from lance_ops.core.versions import FileVersion
from lance_ops.reading import ScannedRows, offset_array
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table import Fragment
from lance_ops.table.rows import join_bitmaps
from lance_ops.transactions import PendingFiles, Update, remove_files_of_job
from lance_ops.writing import (
    TaskShare,
    UpdatedRowWriter,
    choose_file_version,
    commit_operation,
    share_rows,
    write_deletion_files,
)

__all__ = [
    "RewrittenRows",
    "UpdatePlan",
    "UpdateTask",
    "bind_updates",
    "commit_update",
    "plan_update",
    "rewrite_rows",
    "update",
]

_WRITTEN_BYTES = 1 << 20
"""Rows of small fragments are written together up to this size."""


@dataclass(frozen=True)
class UpdateTask:
    """Rows of one version, of which those that match get new values."""

    snapshot: SnapshotReference
    assignments: tuple[Assignment, ...]
    share: TaskShare
    file_version: FileVersion


@dataclass(frozen=True)
class UpdatePlan:
    """An update as of the snapshot's version."""

    snapshot: Snapshot
    assignments: tuple[Assignment, ...]
    tasks: tuple[UpdateTask, ...]

    @property
    def job(self) -> Job:
        """What the tasks do together, each weighed by the bytes of its rows."""
        remove = partial(remove_files_of_job, self.snapshot.store)
        job = Job.on("update", self.snapshot.uri, self.snapshot.version, remove_files=remove)
        return job.in_bytes(task.share.size_bytes for task in self.tasks)


@dataclass(frozen=True)
class RewrittenRows:
    """New fragments, and for each old fragment a serialized Roaring bitmap of the replaced physical offsets."""

    offsets: Mapping[int, bytes]
    fragments: tuple[Fragment, ...]


def update(
    snapshot: Snapshot,
    assignments: Sequence[Assignment],
    predicate: Predicate | None,
    runner: Runner,
    properties: Mapping[str, str] | None = None,
    file_version: str | None = None,
) -> tuple[Snapshot, int]:
    """Update the matching rows; return the new snapshot and the number of updated rows.

    If no row matches, nothing is committed. Raises `InvalidInput` when a value cannot be computed, and
    `RetryableConflict` when a concurrent transaction touched the same rows: plan again on the newest version.
    """
    plan = plan_update(snapshot, assignments, predicate, file_version, in_threads=isinstance(runner, InThreads))
    outcomes = runner.map(rewrite_rows, plan.tasks, plan.job, lambda outcome: _pending(snapshot, [outcome]).abandon())
    return commit_update(plan, outcomes, properties, runner)


def bind_updates(snapshot: Snapshot, updates: Mapping[str, str]) -> tuple[Assignment, ...]:
    """Parse the new value of each column; raise `InvalidInput` if there is no column, or one does not exist.

    Raises `UnsupportedFeature` for a field inside a struct, and what `parse_assignment` raises.
    """
    if not updates:
        raise InvalidInput("update needs a column and its new value")
    schema = snapshot.schema.to_arrow_storage()
    bound = []
    for column, text in updates.items():
        field = snapshot.schema.field(column)
        if field.name != column and len(split_path(column)) > 1:
            raise UnsupportedFeature("updating a field inside a struct", f"column {column!r}")
        bound.append(parse_assignment(field.name, field.arrow_type, text, schema))
    return tuple(bound)


def plan_update(
    snapshot: Snapshot,
    assignments: Sequence[Assignment],
    predicate: Predicate | None,
    file_version: str | None = None,
    *,
    in_threads: bool = True,
) -> UpdatePlan:
    """Share the rows that may match among tasks; `file_version` is as for `choose_file_version`.

    Unless they run `in_threads` of one process, several tasks may have rows of one fragment. Raises as `share_rows`
    does.
    """
    reference, version = SnapshotReference.of(snapshot), choose_file_version(snapshot, file_version)
    shares = share_rows(snapshot, predicate, writes_fragments=True, in_threads=in_threads)
    tasks = tuple(UpdateTask(reference, tuple(assignments), share, version) for share in shares)
    return UpdatePlan(snapshot, tuple(assignments), tasks)


def rewrite_rows(task: UpdateTask) -> RewrittenRows:
    """Write the task's matching rows with their new values; on an error all files are deleted."""
    snapshot = task.snapshot.open()
    found: dict[int, BitMap] = {}
    with UpdatedRowWriter(snapshot, task.file_version) as writer:
        scanned = scan_to_rewrite(snapshot, task.share.request(snapshot, snapshot.schema))
        for parts in _together(scanned, 0 if snapshot.schema.has_dictionaries else _WRITTEN_BYTES):
            for rows in parts:
                found.setdefault(rows.fragment.id, BitMap()).update(rows.bitmap())
            ids = [snapshot.row_ids(rows.fragment, offset_array(rows.offsets)) for rows in parts if writer.keeps_ids]
            table = pa.concat_tables([rows.table for rows in parts]).combine_chunks() if parts[1:] else parts[0].table
            changed = _with_new_values(table, task.assignments)
            writer.write_updated(changed, np.concatenate(ids) if ids else None)
        fragments = writer.finish()
    return RewrittenRows({fragment_id: offsets.serialize() for fragment_id, offsets in found.items()}, fragments)


def _together(scanned: Iterable[ScannedRows], most_bytes: int) -> Iterator[list[ScannedRows]]:
    """Yield rows of small fragments together up to a number of bytes: to write them has a fixed cost."""
    parts: list[ScannedRows] = []
    num_bytes = 0
    for rows in scanned:
        size = rows.table.nbytes
        if parts and num_bytes + size > most_bytes:
            yield parts
            parts, num_bytes = [], 0
        parts.append(rows)
        num_bytes += size
    if parts:
        yield parts


def commit_update(
    plan: UpdatePlan,
    outcomes: Sequence[RewrittenRows],
    properties: Mapping[str, str] | None = None,
    runner: Runner | None = None,
) -> tuple[Snapshot, int]:
    """Write the deletion files, as `write_deletion_files` does with `runner`, and commit; see `update`."""
    snapshot, offsets = plan.snapshot, join_bitmaps(each.offsets for each in outcomes)
    if not offsets:
        return snapshot, 0
    pending = _pending(snapshot, outcomes)
    with pending.abandoned_on_failure():
        deletions = write_deletion_files(snapshot, offsets, runner)
    assigned = [snapshot.schema.field(assignment.column) for assignment in plan.assignments]
    operation = Update(
        removed_fragment_ids=deletions.removed_fragment_ids,
        updated_fragments=deletions.updated_fragments,
        new_fragments=pending.fragments,
        fields_for_preserving_frag_bitmap=tuple(node.id for field in assigned for node in field.walk()),
    )
    committed = commit_operation(snapshot, operation, properties=properties, pending=pending + deletions.pending)
    return committed, sum(map(len, offsets.values()))


def _pending(snapshot: Snapshot, outcomes: Sequence[RewrittenRows]) -> PendingFiles:
    """Return the files that tasks wrote: `UpdatedRowWriter` leaves them unsynced."""
    new = (fragment for outcome in outcomes for fragment in outcome.fragments)
    return PendingFiles.of_fragments(snapshot.file_locations, new, durable=False)


def _with_new_values(rows: pa.Table, assignments: Sequence[Assignment]) -> pa.Table:
    """Return the rows with their new values, all computed from the old values."""
    batches = rows.to_batches()
    changed = rows
    for assignment in assignments:
        position = rows.schema.get_field_index(assignment.column)
        values = pa.chunked_array([assignment.evaluate(batch) for batch in batches], assignment.arrow_type)
        changed = changed.set_column(position, rows.schema.field(position), values)
    return changed
