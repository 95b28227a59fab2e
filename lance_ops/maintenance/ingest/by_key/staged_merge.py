"""Merge staged batches into a table by key, as one version that carries the batches' tokens.

    batches -> stage: a dataset of their rows, beneath the target's `data`, in the order of arrival
    upsert:   earlier rows of a key are deleted from the stage; the stage is the merge's source
    history:  tasks work the changes into the histories of their keys; what they write is the merge's source
    merge -> one Update of the target

Two merges on the same keys conflict, whatever rows they touch, so that no key is inserted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import pyarrow.compute as pc

from lance_ops.changing.merge_insert import MergeCounts, MergeRequest, WhenMatched
from lance_ops.changing.merge_insert.by_tasks import SourceRows, plan_distributed_merge, prepare_distributed_merge
from lance_ops.committers import open_root
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance.ingest.by_key.history import HistoryTask, write_history
from lance_ops.maintenance.ingest.by_key.history_columns import HistoryColumns
from lance_ops.maintenance.ingest.by_key.last_rows import find_earlier_rows
from lance_ops.maintenance.ingest.by_key.staged_rows import buckets_of, bytes_of_buckets
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table import Fragment
from lance_ops.table.manifest import FileLocations
from lance_ops.table.rows import join_bitmaps
from lance_ops.transactions import Append, Delete, PendingFiles, exclusive_key_properties
from lance_ops.writing import commit_operation, create_dataset, write_deletion_files

__all__ = ["KeyedBatches", "merge_batches"]


@dataclass(frozen=True)
class KeyedBatches:
    """Fragments of new batches, written for the stage at `uri`, and how they become rows of a table.

    With `history` the rows are changes. The rows of the `replaced` batches, whose keys are in column `batch_column`,
    leave the table unless a new row has their key.
    """

    uri: str
    schema: Schema
    file_version: FileVersion
    fragments: tuple[Fragment, ...]
    keys: tuple[str, ...]
    history: HistoryColumns | None = None
    batch_column: str | None = None
    replaced: tuple[str, ...] = ()
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


def merge_batches(
    target: Snapshot, batches: KeyedBatches, runner: Runner, properties: Mapping[str, str]
) -> tuple[Snapshot, MergeCounts]:
    """Merge and commit; the version is there even if no row changes, because it carries the properties.

    Raises `RetryableConflict` if a concurrent commit changed the same rows or merged by the same keys. The stage stays:
    its caller removes it.
    """
    stage = _stage(batches, batches.uri, batches.schema, batches.fragments)
    if batches.history is None:
        source, on = _last_rows(stage, batches.keys, runner), batches.keys
    else:
        source, on = (
            _history(target, stage, batches, batches.history, runner),
            (*batches.keys, batches.history.valid_from),
        )
    request = MergeRequest(on, WhenMatched.UPDATE, inserts=True)
    if batches.replaced:
        gone = pc.field(batches.batch_column).isin(list(batches.replaced))
        request = MergeRequest(on, WhenMatched.UPDATE, inserts=True, deletes_unmatched=True, delete_condition=gone)
    prepared = prepare_distributed_merge(plan_distributed_merge(target, request, SourceRows.of(source)), runner)
    operation = Append(()) if prepared.counts == MergeCounts(0, 0, 0) else prepared.operation
    named = {**properties, **exclusive_key_properties(batches.keys)}
    return commit_operation(target, operation, properties=named, pending=prepared.pending), prepared.counts


def _stage(batches: KeyedBatches, uri: str, schema: Schema, fragments: Sequence[Fragment]) -> Snapshot:
    root = open_root(uri, batches.storage_options)
    pending = PendingFiles.of_fragments(FileLocations(root.store), fragments)
    return create_dataset(root, schema, pending, batches.file_version)


def _last_rows(stage: Snapshot, keys: Sequence[str], runner: Runner) -> Snapshot:
    """Delete the staged rows whose key a later row has."""
    buckets = buckets_of(stage, keys)
    job = Job.on("keep the last row of each key for", stage.uri, stage.version)
    found = join_bitmaps(runner.map(find_earlier_rows, buckets, job.in_bytes(bytes_of_buckets(stage, buckets))))
    if not found:
        return stage
    deletions = write_deletion_files(stage, found, runner)
    operation = Delete(deletions.updated_fragments, deletions.removed_fragment_ids, "a later row has the same key")
    return commit_operation(stage, operation, pending=deletions.pending)


def _history(
    target: Snapshot, stage: Snapshot, batches: KeyedBatches, columns: HistoryColumns, runner: Runner
) -> Snapshot:
    """Return a dataset of the rows to add to the histories, and of those to end."""
    uri, buckets = f"{batches.uri}/data/history", buckets_of(stage, batches.keys)
    tasks = [
        HistoryTask(
            bucket,
            SnapshotReference.of(target),
            columns,
            batches.batch_column,
            uri,
            batches.file_version,
            batches.storage_options,
        )
        for bucket in buckets
    ]
    job = Job.on("work changes into", target.uri, target.version).in_bytes(bytes_of_buckets(stage, buckets))
    outcomes = runner.map(write_history, tasks, job)
    return _stage(batches, uri, target.schema, [fragment for outcome in outcomes for fragment in outcome])
