"""Merge a source into a table by key: update, insert and delete rows in one commit.

plan_merge(snapshot, request, source) -> MergePlan    the source's keys, and the tasks that match them
find_matches(task) -> Matches                         anywhere
prepare_merge(plan, matches) -> PreparedMerge         writes rows and deletion files, commits nothing
commit_merge(snapshot, prepared) -> Snapshot          one transaction
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from lance_ops.blobs import take_to_rewrite
from lance_ops.changing.columns import (
    ReplacedValues,
    fragments_with_replaced_values,
    pending_columns,
    plan_value_replacement,
    run_backfill,
)
from lance_ops.changing.merge_insert.explain import explain_merge
from lance_ops.changing.merge_insert.inserted_key_filter import encode_inserted_keys
from lance_ops.changing.merge_insert.matching import Matches, MatchTask, find_matches, plan_matching
from lance_ops.changing.merge_insert.merge_request import BoundMerge, MergeRequest, bind_merge, write_targets
from lance_ops.changing.merge_insert.merged_rows import with_missing_values_kept, write_merged_rows
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.arrow import rows_at
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.records import dataclass
from lance_ops.indices import RowAddressSet
from lance_ops.reading import ROW_ADDRESS, ScanRequest
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.table.rows import NO_CODE
from lance_ops.transactions import PendingFiles, Update, UpdateMode
from lance_ops.writing import choose_file_version, commit_operation, write_deletion_files

__all__ = [
    "MergeCounts",
    "MergePlan",
    "PreparedMerge",
    "commit_merge",
    "merge_insert",
    "plan_merge",
    "prepare_merge",
]


@dataclass(frozen=True)
class MergeCounts:
    """How many rows were inserted, updated and deleted."""

    inserted: int
    updated: int
    deleted: int


_NOTHING_CHANGED = MergeCounts(0, 0, 0)


@dataclass(frozen=True)
class MergePlan:
    """A merge as of the snapshot's version."""

    snapshot: Snapshot
    merge: BoundMerge
    tasks: tuple[MatchTask, ...]

    @property
    def job(self) -> Job:
        """What the tasks do together."""
        return Job.on("merge into", self.snapshot.uri, self.snapshot.version)

    @property
    def index_name(self) -> str | None:
        """The index that finds the source's keys; None when a scan reads the table's keys."""
        return self.tasks[0].index_name if self.tasks else None

    def explain(self) -> str:
        """Describe the merge, one node a line."""
        return explain_merge(self.snapshot, self.merge, self.tasks)


@dataclass(frozen=True)
class PreparedMerge:
    """The operation to commit, its counts and its pending files. The operation is empty if no row changes."""

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
    """Merge and commit; return the new snapshot, or the same one if no row changes.

    Raises what `bind_merge` and `find_matches` raise, and `RetryableConflict` when a concurrent transaction touched the
    same rows or inserted the same primary key: plan again on the newest version.
    """
    plan = plan_merge(snapshot, request, source)
    prepared = prepare_merge(plan, runner.map(find_matches, plan.tasks, plan.job), runner)
    return commit_merge(snapshot, prepared, properties), prepared.counts


def plan_merge(snapshot: Snapshot, request: MergeRequest, source: pa.Table) -> MergePlan:
    """Check the request against a version and a source, and choose how rows are matched."""
    choose_file_version(snapshot, request.file_version)
    write_targets(snapshot, request)
    merge = bind_merge(snapshot, request, source)
    return MergePlan(snapshot, merge, plan_matching(snapshot, merge))


def prepare_merge(plan: MergePlan, outcomes: Sequence[Matches], runner: Runner) -> PreparedMerge:
    """Write new rows and deletion files, or columns in place; on an error all files are deleted."""
    snapshot, merge, matches = plan.snapshot, plan.merge, Matches.joined(outcomes)
    if merge.request.in_place:
        return _prepare_in_place(plan, matches, runner)
    inserted = _unmatched_source_rows(plan, matches) if merge.request.inserts else np.empty(0, np.int64)
    removed = np.concatenate((matches.updated, matches.deleted, matches.deleted_unmatched))
    counts = MergeCounts(len(inserted), len(matches.updated), len(removed) - len(matches.updated))
    targets = write_targets(snapshot, merge.request)
    new = write_merged_rows(snapshot, merge, matches, inserted, targets)
    pending = PendingFiles.of_fragments(targets.locations, new, durable=False)
    with pending.abandoned_on_failure():
        inserted_rows = encode_inserted_keys(snapshot, merge, inserted)
        deletions = write_deletion_files(snapshot, RowAddressSet.from_addresses(removed).bitmaps, runner)
    operation = Update(
        removed_fragment_ids=deletions.removed_fragment_ids,
        updated_fragments=deletions.updated_fragments,
        new_fragments=new,
        fields_for_preserving_frag_bitmap=tuple(node.id for node in snapshot.schema.walk()),
        inserted_rows=inserted_rows,
    )
    return PreparedMerge(operation, counts, pending + deletions.pending)


def commit_merge(snapshot: Snapshot, prepared: PreparedMerge, properties: Mapping[str, str] | None = None) -> Snapshot:
    """Commit a merge that was prepared on this snapshot; see `merge_insert`."""
    if prepared.counts == _NOTHING_CHANGED:
        return snapshot
    return commit_operation(snapshot, prepared.operation, properties=properties, pending=prepared.pending)


def _prepare_in_place(plan: MergePlan, matches: Matches, runner: Runner) -> PreparedMerge:
    """Write one file with the source's columns for each fragment that has updated rows."""
    snapshot, merge = plan.snapshot, plan.merge
    keys = {key.path[0] for key in merge.keys}
    values = merge.source.drop_columns([name for name in merge.source.schema.names if name in keys])
    values = rows_at(values, matches.source_rows)
    if merge.partial_structs:
        request = ScanRequest(snapshot.schema.project(list(merge.partial_structs)), with_row_address=True)
        old = take_to_rewrite(snapshot.verifying(), matches.updated, request).drop_columns([ROW_ADDRESS])
        values = with_missing_values_kept(values, old, merge.partial_structs)
    replaced = ReplacedValues(ROW_ADDRESS, SourceKeys([pa.array(matches.updated)], [ROW_ADDRESS]), values)
    offsets = RowAddressSet.from_addresses(matches.updated).bitmaps
    tasks = plan_value_replacement(snapshot, replaced, list(offsets))
    files = run_backfill(snapshot, tasks, runner, plan.job)
    fragments, fields = fragments_with_replaced_values(snapshot, replaced, files)
    operation = Update(
        updated_fragments=fragments,
        fields_modified=fields,
        update_mode=UpdateMode.REWRITE_COLUMNS,
        updated_offsets=offsets if snapshot.manifest.uses_stable_row_ids else {},
    )
    return PreparedMerge(operation, MergeCounts(0, len(matches.updated), 0), pending_columns(snapshot, files))


def _unmatched_source_rows(plan: MergePlan, matches: Matches) -> Int64Array:
    """Return the source rows whose key the table does not have. A key with a null in it equals no key of the table."""
    if not plan.tasks:
        return np.arange(plan.merge.source.num_rows)
    keys = plan.tasks[0].keys
    is_found = np.zeros(keys.num_codes + 1, np.bool_)
    is_found[matches.found_codes] = True
    return np.flatnonzero((keys.codes == NO_CODE) | ~is_found[keys.codes])
