"""Commit what the tasks of an ingestion wrote: as an append, an overwrite, an exchange of rows, or a merge by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import pyarrow.compute as pc

from lance_ops.changing import replace_matching
from lance_ops.changing.columns import change_schema
from lance_ops.changing.merge_insert import MergeCounts
from lance_ops.committers import open_root
from lance_ops.core.errors import InvalidInput, RetryableConflict
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.legacy import join_dictionaries_of_fragments
from lance_ops.maintenance.batch_ledger import batch_properties, ingested_batches
from lance_ops.maintenance.cleanup import clean_up_if_due
from lance_ops.maintenance.ingest.by_key import KeyedBatches, merge_batches
from lance_ops.maintenance.ingest.planning import IngestPlan
from lance_ops.maintenance.ingest.running.ingest_tasks import WrittenFiles, pending_files, store_of_rows
from lance_ops.reading import ScanRequest, bind_filter, scan
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import Fragment
from lance_ops.transactions import Append, Overwrite, PendingFiles
from lance_ops.writing import commit_operation, create_dataset

__all__ = ["IngestResult", "commit_ingest"]


@dataclass(frozen=True)
class IngestResult:
    """What an ingestion did; `version` is None if the table already held every batch.

    `replaced` are those of the ingested batches whose rows of before left the table. `refused` are the batches that
    were set aside, each with the reason, which names file, column and value. `not_as_listed` are those of them of which
    a file was gone or had changed when it was read: a new listing tells whether they can be ingested. `merged` counts
    what a merge by key did; `num_rows` are the rows of the raw files, as without a merge.
    """

    version: int | None
    num_rows: int
    num_fragments: int
    ingested: tuple[str, ...]
    skipped: tuple[str, ...]
    rows_by_batch: Mapping[str, int] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    merged: MergeCounts | None = None
    not_as_listed: tuple[str, ...] = ()


def commit_ingest(plan: IngestPlan, outcomes: Sequence[WrittenFiles], runner: Runner | None = None) -> IngestResult:
    """Commit the fragments that the tasks wrote; `runner` widens columns and finds rows to replace.

    Raises `RetryableConflict` if a concurrent commit ingested one of the batches, or changed the schema; the new files
    are then deleted.
    """
    if not plan.batches:
        return IngestResult(None, 0, 0, (), plan.skipped)
    fragments = tuple(fragment for outcome in outcomes for fragment in outcome.fragments)
    rows_by_batch: Counter[str] = Counter()
    for outcome in outcomes:
        rows_by_batch.update(outcome.rows_by_batch)
    properties = batch_properties({batch.key: batch.token for batch in plan.batches})
    merged = None
    if plan.stage is not None:
        committed, merged = _merge(plan, plan.stage, fragments, properties, runner or InThreads())
    elif plan.snapshot is None:
        committed = _create(plan, fragments, properties)
    else:
        committed = _change(plan, plan.snapshot, fragments, properties, runner or InThreads())
    if plan.snapshot is not None:
        clean_up_if_due(plan.snapshot.version, committed)
    return IngestResult(
        committed.version,
        sum(fragment.physical_rows for fragment in fragments),
        len(fragments),
        tuple(batch.key for batch in plan.batches),
        plan.skipped,
        {batch.key: rows_by_batch[batch.key] for batch in plan.batches},
        plan.replaced,
        merged=merged,
    )


def _merge(
    plan: IngestPlan,
    stage: KeyedBatches,
    fragments: tuple[Fragment, ...],
    properties: Mapping[str, str],
    runner: Runner,
) -> tuple[Snapshot, MergeCounts]:
    """Merge the staged rows into the table. If there is no table, create it without rows first."""
    target = plan.snapshot
    with pending_files(store_of_rows(plan), fragments).abandoned_on_failure():
        if target is None:
            root = open_root(plan.uri, plan.storage_options)
            target = create_dataset(
                root, plan.schema, PendingFiles(), plan.file_version, stable_row_ids=plan.stable_row_ids
            )
        target = _commit_schema_change(plan, target, runner)
        if plan.replaced:
            _check_labelled(target, str(plan.batch_column), plan.replaced)
    return merge_batches(target, replace(stage, fragments=fragments, replaced=plan.replaced), runner, properties)


def _create(plan: IngestPlan, fragments: tuple[Fragment, ...], properties: Mapping[str, str]) -> Snapshot:
    root = open_root(plan.uri, plan.storage_options)
    schema, pending = _with_joined_dictionaries(root.store, plan.schema, fragments)
    return create_dataset(
        root, schema, pending, plan.file_version, stable_row_ids=plan.stable_row_ids, properties=properties
    )


def _change(
    plan: IngestPlan,
    snapshot: Snapshot,
    fragments: tuple[Fragment, ...],
    properties: Mapping[str, str],
    runner: Runner,
) -> Snapshot:
    pending = pending_files(snapshot.store, fragments)
    if plan.overwrites:
        schema, pending = _with_joined_dictionaries(snapshot.store, plan.schema, fragments)
        operation = Overwrite(pending.fragments, schema)
        return commit_operation(
            snapshot, operation, properties=properties, pending=pending, file_version=plan.file_version
        )
    with pending.abandoned_on_failure():
        snapshot = _commit_schema_change(plan, snapshot, runner)
        if plan.replaced:
            _check_labelled(snapshot, str(plan.batch_column), plan.replaced)
    if plan.replaced:
        # A run that ingested one of the new batches meanwhile loses its rows of it, so that none is there twice.
        ours = pc.field(plan.batch_column).isin([batch.key for batch in plan.batches])
        return replace_matching(snapshot, ours, pending, runner, properties)
    return commit_operation(snapshot, Append(fragments), properties=properties, pending=pending)


def _commit_schema_change(plan: IngestPlan, snapshot: Snapshot, runner: Runner) -> Snapshot:
    """Commit the plan's change of the schema, if it has one, and return the version on which to write.

    A commit compares itself only with versions after the one that is returned. So another run that ingested a batch of
    the plan before it raises `RetryableConflict` here.
    """
    if not plan.change:
        return snapshot
    changed = change_schema(snapshot, plan.change, plan.schema, runner)
    ingested = ingested_batches(changed)
    for batch in plan.batches:
        found = ingested.get(batch.key)
        if found is not None and found.version > snapshot.version:
            raise RetryableConflict(
                f"{snapshot.uri}: version {found.version} ingested batch {batch.key!r} meanwhile: plan the batches "
                "again on the newest version"
            )
    return changed


def _check_labelled(snapshot: Snapshot, column: str, keys: Sequence[str]) -> None:
    """Raise `InvalidInput` for a batch of which no row is found while rows are there that name no batch."""

    def any_row(condition: pc.Expression) -> bool:
        request = ScanRequest(Schema(()), bind_filter(snapshot, condition), limit=1, with_row_address=True)
        return any(len(table) for table in scan(snapshot, request))

    unnamed = any_row(pc.field(column).is_null())
    for key in keys if unnamed else ():
        if not any_row(pc.field(column) == key):
            raise InvalidInput(
                f"{snapshot.uri}: no row names batch {key!r} in column {column!r}, and other rows name none, so its "
                "rows cannot be found: delete them, and give the new files a key of their own"
            )


def _with_joined_dictionaries(
    store: Store, schema: Schema, fragments: tuple[Fragment, ...]
) -> tuple[Schema, PendingFiles]:
    """Return the schema with the dictionaries of all tasks, and the files."""
    with pending_files(store, fragments).abandoned_on_failure():
        schema, fragments = join_dictionaries_of_fragments(store, schema, fragments)
    return schema, pending_files(store, fragments)
