"""Bring a source's rows into a table by key, as one commit.

    plan_merge(snapshot, request, source) -> MergePlan      the source's keys, and the tasks that match them
    find_matches(task) -> Matches                        anywhere
    prepare_merge(plan, matches) -> PreparedMerge        rows written, deletion files written, nothing committed
    commit_merge(plan, prepared) -> Snapshot             one transaction

Updated rows keep their ids in a table of stable row ids and come before the inserted ones. A source that lacks columns
leaves them as they are in updated rows and null in inserted ones; so does one whose structs lack fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_ops.blobs import take_to_rewrite
from lance_ops.changing.columns import (
    ReplacedValues,
    fragments_with_replaced_values,
    pending_columns,
    plan_value_replacement,
    write_columns,
)
from lance_ops.changing.merge_insert.explain import explain_merge
from lance_ops.changing.merge_insert.inserted_key_filter import encode_inserted_keys
from lance_ops.changing.merge_insert.matching import Matches, MatchTask, find_matches, plan_matching
from lance_ops.changing.merge_insert.merge_request import BoundMerge, MergeRequest, bind_merge, write_targets
from lance_ops.changing.merge_insert.missing_struct_fields import with_missing_fields_kept
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.addresses import fragment_of, offset_of
from lance_ops.core.arrow import rows_at
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_ADDRESS, ROW_ID, ScanRequest
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import NO_CODE, bitmap_of
from lance_ops.transactions import PendingFiles, Update, UpdateMode
from lance_ops.writing import (
    Runner,
    UpdatedRowWriter,
    WriteTargets,
    choose_file_version,
    commit_operation,
    run_all_or_discard,
    write_deletion_files,
)

__all__ = [
    "MergeCounts",
    "MergePlan",
    "PreparedMerge",
    "commit_merge",
    "merge_insert",
    "plan_merge",
    "prepare_merge",
]

_ROWS_AT_ONCE = 1 << 16
_BLOBS_AT_ONCE = 256


@dataclass(frozen=True)
class MergeCounts:
    """How many rows were inserted, updated and deleted."""

    inserted: int
    updated: int
    deleted: int


NOTHING = MergeCounts(0, 0, 0)


@dataclass(frozen=True)
class MergePlan:
    """A merge as of the snapshot's version."""

    snapshot: Snapshot
    merge: BoundMerge
    tasks: tuple[MatchTask, ...]

    @property
    def index_name(self) -> str | None:
        """The index that is asked for the source's keys; None when the table's keys are read."""
        return self.tasks[0].index_name if self.tasks else None

    def explain(self) -> str:
        """Describe the merge, one node a line."""
        return explain_merge(self.snapshot, self.merge, self.tasks)


@dataclass(frozen=True)
class PreparedMerge:
    """The operation to commit, its counts and its pending files; the operation is empty where nothing changes."""

    operation: Update
    counts: MergeCounts
    pending: PendingFiles


def merge_insert(
    snapshot: Snapshot,
    request: MergeRequest,
    source: pa.Table,
    runner: Runner,
    properties: Mapping[str, str] | None = None,
) -> tuple[Snapshot, MergeCounts]:
    """Merge and commit; return the new snapshot, the same one where nothing changed.

    Raises as `bind_merge` and `find_matches` do, and `RetryableConflict` when a concurrent commit touched the same rows
    or inserted the same primary key: plan again on the newest version.
    """
    plan = plan_merge(snapshot, request, source)
    prepared = prepare_merge(plan, runner.map(find_matches, plan.tasks), runner)
    return commit_merge(plan, prepared, properties), prepared.counts


def plan_merge(snapshot: Snapshot, request: MergeRequest, source: pa.Table) -> MergePlan:
    """Bind a merge to a version and choose how its rows are matched."""
    choose_file_version(snapshot, request.file_version)
    write_targets(snapshot, request)
    merge = bind_merge(snapshot, request, source)
    return MergePlan(snapshot, merge, plan_matching(snapshot, merge))


def prepare_merge(plan: MergePlan, outcomes: Sequence[Matches], runner: Runner) -> PreparedMerge:
    """Write the rows and deletion files, or columns in place; on an error nothing is left of them."""
    snapshot, merge, matches = plan.snapshot, plan.merge, Matches.joined(outcomes)
    if merge.request.in_place:
        return _prepare_in_place(plan, matches, runner)
    inserted = _unmatched_source_rows(plan, matches) if merge.request.inserts else np.empty(0, np.int64)
    gone = np.concatenate((matches.updated, matches.deleted, matches.orphaned))
    counts = MergeCounts(len(inserted), len(matches.updated), len(matches.deleted) + len(matches.orphaned))
    targets = write_targets(snapshot, merge.request)
    new = _write_rows(plan, matches, inserted, targets)
    pending = PendingFiles.of_fragments(targets.locations, new, durable=False)
    with pending.abandoned_on_failure():
        deletions = write_deletion_files(snapshot, _offsets(gone))
    operation = Update(
        removed_fragment_ids=deletions.removed_fragment_ids,
        updated_fragments=deletions.updated_fragments,
        new_fragments=new,
        fields_for_preserving_frag_bitmap=tuple(node.id for node in snapshot.schema.walk()),
        inserted_rows=encode_inserted_keys(snapshot, merge, inserted),
    )
    return PreparedMerge(operation, counts, pending + deletions.pending)


def commit_merge(plan: MergePlan, prepared: PreparedMerge, properties: Mapping[str, str] | None = None) -> Snapshot:
    """Commit what was prepared; see `merge_insert`."""
    if prepared.counts == NOTHING:
        return plan.snapshot
    return commit_operation(plan.snapshot, prepared.operation, properties=properties, pending=prepared.pending)


def _prepare_in_place(plan: MergePlan, matches: Matches, runner: Runner) -> PreparedMerge:
    """Write a file with the source's columns for each fragment that has matched rows."""
    snapshot, merge = plan.snapshot, plan.merge
    keys = {key.path[0] for key in merge.keys}
    values = merge.source.drop_columns([name for name in merge.source.schema.names if name in keys])
    values = rows_at(values, matches.source_rows)
    if merge.partial_structs:
        request = ScanRequest(snapshot.schema.project(list(merge.partial_structs)), with_row_address=True)
        old = take_to_rewrite(snapshot, matches.updated, request).drop_columns([ROW_ADDRESS])
        values = _completed(values, old, merge.partial_structs)
    patch = ReplacedValues(ROW_ADDRESS, SourceKeys([pa.array(matches.updated)], [ROW_ADDRESS]), values)
    offsets = _offsets(matches.updated)
    tasks = plan_value_replacement(snapshot, patch, list(offsets))
    files = run_all_or_discard(runner, write_columns, tasks, lambda file: pending_columns(snapshot, [file]).abandon())
    fragments, fields = fragments_with_replaced_values(snapshot, patch, files)
    operation = Update(
        updated_fragments=fragments,
        fields_modified=fields,
        update_mode=UpdateMode.REWRITE_COLUMNS,
        updated_offsets=offsets if snapshot.manifest.uses_stable_row_ids else {},
    )
    return PreparedMerge(operation, MergeCounts(0, len(matches.updated), 0), pending_columns(snapshot, files))


def _unmatched_source_rows(plan: MergePlan, matches: Matches) -> Int64Array:
    """Return the source rows whose key the target does not have; one with a null in it is never there."""
    if not plan.tasks:
        return np.arange(plan.merge.source.num_rows)
    keys = plan.tasks[0].keys
    known = np.zeros(keys.num_codes + 1, np.bool_)
    known[matches.found] = True
    return np.flatnonzero((keys.codes == NO_CODE) | ~known[keys.codes])


def _write_rows(plan: MergePlan, matches: Matches, inserted: Int64Array, targets: WriteTargets) -> tuple[Fragment, ...]:
    """Write updated rows, in the order they stand in the table, and then the inserted ones."""
    snapshot, merge = plan.snapshot, plan.merge
    order = np.argsort(matches.updated)
    missing = [
        name for name in snapshot.schema.names if name not in merge.source.schema.names or name in merge.partial_structs
    ]
    with UpdatedRowWriter(snapshot, choose_file_version(snapshot, merge.request.file_version), targets) as writer:
        whole = inserted
        if missing or writer.keeps_ids:
            for rows, row_ids in _updated_rows(snapshot, merge, matches, order, missing):
                writer.write_updated(rows, row_ids)
        else:  # the source has all there is of an updated row
            whole = np.concatenate((matches.source_rows[order], inserted))
        for at in range(0, len(whole), _ROWS_AT_ONCE):
            writer.write_new(rows_at(merge.source, whole[at : at + _ROWS_AT_ONCE]))
        return writer.finish()


def _updated_rows(
    snapshot: Snapshot, merge: BoundMerge, matches: Matches, order: Int64Array, missing: Sequence[str]
) -> Iterator[tuple[pa.Table, Uint64Array]]:
    """Yield updated rows in an order, with their `missing` columns as they are and the row ids they have."""
    request = ScanRequest(
        snapshot.schema.project(missing) if missing else Schema(()), with_row_id=True, with_row_address=True
    )
    step = _BLOBS_AT_ONCE if request.schema.holds_blobs_v2 else _ROWS_AT_ONCE
    for at in range(0, len(order), step):
        chosen = order[at : at + step]
        old = take_to_rewrite(snapshot, matches.updated[chosen], request)
        row_ids = old.column(ROW_ID).to_numpy()
        old = old.drop_columns([ROW_ID, ROW_ADDRESS])
        yield _completed(rows_at(merge.source, matches.source_rows[chosen]), old, merge.partial_structs), row_ids


def _completed(rows: pa.Table, old: pa.Table, structs: Mapping[str, pa.DataType]) -> pa.Table:
    """Return rows of the source with what the table's, the `old` ones, have beside it."""
    for position, field in enumerate(old.schema):
        if field.name not in structs:
            rows = rows.append_column(field, old.column(position))
            continue
        at = rows.schema.get_field_index(field.name)
        new, kept = rows.column(at).combine_chunks(), old.column(position).combine_chunks()
        rows = rows.set_column(at, rows.schema.field(at), with_missing_fields_kept(new, kept, structs[field.name]))
    return rows


def _offsets(addresses: Uint64Array) -> dict[int, BitMap]:
    """Return physical offsets by fragment."""
    ascending = np.sort(addresses)
    fragments, offsets = fragment_of(ascending), offset_of(ascending).astype(np.uint32)
    starts = np.flatnonzero(np.diff(fragments, prepend=fragments[:1] + np.uint64(1)))
    ends = [*starts[1:], len(fragments)][: len(starts)]
    return {int(fragments[start]): bitmap_of(offsets[start:end]) for start, end in zip(starts, ends, strict=True)}
