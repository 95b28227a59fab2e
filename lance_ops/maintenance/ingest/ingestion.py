"""Append raw files, each batch exactly once.

    plan_ingest(uri, batches, …) -> IngestPlan      which batches are new, the schema, tasks of raw files
    execute(task) -> WrittenFiles                   any process: raw files in, fragments out
    commit_ingest(plan, outcomes) -> IngestResult   one Append (an Overwrite creates or replaces the table)

All batches of a call become one version. Its transaction records each batch's token, and a batch whose token is in the
table's history is not ingested again. If the table lacks columns, a version before it adds them. A batch whose files
changed can replace its rows: then the version is an Update, which deletes the rows that hold the batch's key. By key,
the tasks write the rows of the new batches to a stage, and a merge of the stage is the version (room `by_key`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.blobs import schema_to_write
from lance_ops.changing import replace_matching
from lance_ops.changing.columns import change_schema
from lance_ops.changing.merge_insert import MergeCounts
from lance_ops.committers import open_root
from lance_ops.core.errors import (
    DatasetAlreadyExists,
    InvalidInput,
    RawFileNotAsListed,
    RawFileRefused,
    RetryableConflict,
    SchemaMismatch,
    VersionNotFound,
)
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.legacy import join_dictionaries_of_fragments
from lance_ops.maintenance.batch_ledger import batch_properties, ingested_batches
from lance_ops.maintenance.cleanup import clean_up_if_due
from lance_ops.maintenance.ingest.by_key import KeyedBatches, merge_batches
from lance_ops.maintenance.ingest.planning import (
    FilePart,
    IngestOptions,
    IngestPlan,
    IngestTask,
    batches_not_as_listed,
    plan_ingest,
    plan_readable,
)
from lance_ops.maintenance.ingest.raw_files import IngestBatch, RawReader
from lance_ops.maintenance.ingest.raw_names import shown_uri
from lance_ops.maintenance.ingest.raw_rows import plain_schema
from lance_ops.maintenance.ingest.raw_schemas import FoundSchemas
from lance_ops.maintenance.ingest.running import ValueChecks
from lance_ops.reading import ScanRequest, bind_filter, scan
from lance_ops.refs import pinned_if_at_risk
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import Fragment
from lance_ops.table.manifest import FileLocations
from lance_ops.transactions import Append, Overwrite, PendingFiles, remove_files_of_job
from lance_ops.writing import FragmentWriter, commit_operation, create_dataset

__all__ = [
    "IngestResult",
    "WrittenFiles",
    "commit_ingest",
    "discard",
    "execute",
    "ingest",
]

_CONFLICT_RETRIES = 10


@dataclass(frozen=True)
class WrittenFiles:
    """The fragments that a task wrote, not yet in any version, and the number of rows of each batch in them.

    `refused` has the batches whose files are in no fragment, each with the reason. `not_as_listed` are those of them
    of which a file is gone or changed.
    """

    fragments: tuple[Fragment, ...]
    rows_by_batch: Mapping[str, int]
    refused: Mapping[str, str] = field(default_factory=dict)
    not_as_listed: frozenset[str] = frozenset()


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


def ingest(
    uri: str,
    batches: Sequence[IngestBatch],
    *,
    storage_options: Mapping[str, str] | None = None,
    raw_storage_options: Mapping[str, str] | None = None,
    options: IngestOptions | None = None,
    runner: Runner | None = None,
    version: int | None = None,
) -> IngestResult:
    """Append or merge the batches that are not in the table yet, as one version.

    With `version` the ingestion is planned on that version, as by `plan_ingest`, and never again: a conflict with a
    newer version raises `RetryableConflict` or `DatasetAlreadyExists`. Raises `InvalidInput` for a batch that was
    ingested with other content, `RawFileRefused` for a raw file that is not read, and `SchemaMismatch` naming the file
    and field that do not fit. With `SET_ASIDE`, none of the three raises: `refused` names the batch.

    After an error other than `CommitStateUnknown` the table has no new row. Versions that come before that of the rows
    may stay: the empty one of a new table, if the merge of `UPSERT` or `HISTORY` fails, and the one that adds or widens
    columns for schema mode `add`. The next call uses them.
    """
    runner = runner or InThreads()
    schemas = FoundSchemas()

    def plan_others(refused: Mapping[str, str], version: int | None) -> tuple[IngestPlan | None, dict[str, str]]:
        plan = partial(
            plan_ingest,
            uri,
            storage_options=storage_options,
            raw_storage_options=raw_storage_options,
            options=options,
            runner=runner,
            version=version,
        )
        return plan_readable(batches, (options or IngestOptions()).bad_batches, plan, schemas, refused)

    retries = _CONFLICT_RETRIES if version is None else 0
    refused: dict[str, str] = {}
    not_as_listed: set[str] = set()

    def with_refused(result: IngestResult) -> IngestResult:
        passing = not_as_listed | batches_not_as_listed(batches, schemas)
        return replace(result, refused=refused, not_as_listed=tuple(key for key in refused if key in passing))

    while True:
        plan, refused = plan_others(refused, version)
        if plan is None:
            return with_refused(IngestResult(None, 0, 0, (), ()))
        try:
            with nullcontext() if plan.snapshot is None else pinned_if_at_risk(plan.snapshot, plan.snapshot):
                outcomes, found, passing = _run(plan, runner)
                refused |= found
                not_as_listed |= passing
                if found and _abandon_if_schema_differs(plan, outcomes, partial(plan_others, refused)):
                    continue
                result = commit_ingest(plan.without(found), outcomes, runner)
            return with_refused(result)
        except (RetryableConflict, DatasetAlreadyExists, VersionNotFound):
            # Another run ingested a batch, created the table, or removed the planned version.
            if not retries:
                raise
            retries, refused, not_as_listed = retries - 1, {}, set()
        finally:
            if plan.stage is not None:
                _store_of(plan).clear_or_leave()


def _abandon_if_schema_differs(
    plan: IngestPlan, outcomes: Sequence[WrittenFiles], plan_others: Callable[[int], tuple[IngestPlan | None, object]]
) -> bool:
    """If the table gets other columns without the refused batches, delete what the tasks wrote, and return True.

    `plan_others` plans the other batches on a version; 0 is that of a table that does not exist.
    """
    if not plan.takes_schema_of_files:
        return False
    written = _pending(_store_of(plan), (fragment for outcome in outcomes for fragment in outcome.fragments))
    with written.abandoned_on_failure():
        others, _ = plan_others(plan.snapshot.version if plan.snapshot else 0)
    if others is None or _columns_of(others.schema) == _columns_of(plan.schema):
        return False
    written.abandon()
    return True


def _columns_of(schema: Schema) -> list[tuple[str, str]]:
    """Return names and types of columns; their order, and the case of names, are no reason to write rows again."""
    return sorted((field.name.lower(), str(field.type)) for field in plain_schema(schema))


def _run(plan: IngestPlan, runner: Runner) -> tuple[list[WrittenFiles], dict[str, str], set[str]]:
    """Return the outcomes of all tasks, the refused batches, of which no row is in them, and those not as listed.

    A batch may have files in several tasks. Those that wrote files of a refused batch run again without it.
    """
    store = _store_of(plan)
    tasks, outcomes = list(plan.tasks), [WrittenFiles((), {})] * len(plan.tasks)
    refused: dict[str, str] = {}
    not_as_listed: set[str] = set()
    todo = list(range(len(tasks)))
    while todo:
        chosen = [tasks[number] for number in todo]
        job = replace(plan.job_of(chosen), remove_files=partial(remove_files_of_job, store))
        try:
            done = runner.map(execute, chosen, job, partial(discard, store))
        except BaseException:
            for outcome in outcomes:
                discard(store, outcome)
            raise
        for number, outcome in zip(todo, done, strict=True):
            outcomes[number], tasks[number] = outcome, tasks[number].without(outcome.refused)
            refused.update(outcome.refused)
            not_as_listed |= outcome.not_as_listed
        tainted = [number for number, task in enumerate(tasks) if not refused.keys().isdisjoint(task.batch_keys)]
        for number in tainted:
            discard(store, outcomes[number])
            outcomes[number], tasks[number] = WrittenFiles((), {}), tasks[number].without(refused)
        todo = [number for number in tainted if tasks[number].parts]
    return outcomes, refused, not_as_listed


def execute(task: IngestTask) -> WrittenFiles:
    """Write the task's raw files, in order, as fragments, without those of bad batches if these are set aside.

    Where a batch is bad, no file is read more than twice: once to find all bad batches, and once to be written. A blob
    without bytes and URI is found only when it is written, so each batch with one costs another reading of the others.
    """
    refused: dict[str, str] = {}
    not_as_listed: frozenset[str] = frozenset()
    while (written := _write_files(task.without(refused))).refused:
        refused |= written.refused
        not_as_listed |= written.not_as_listed
    return replace(written, refused=refused, not_as_listed=not_as_listed)


def _write_files(task: IngestTask) -> WrittenFiles:
    """Write the files; if batches are bad and set aside, write nothing, and return all that are bad."""
    store = open_root(task.uri, task.storage_options).store
    rows_by_batch: Counter[str] = Counter()
    refused: dict[str, str] = {}
    not_as_listed: set[str] = set()
    with (
        RawReader(task.raw_storage_options, task.reading) as reader,
        FragmentWriter(store, task.schema, task.file_version, task.limits) as writer,
    ):
        for part in task.parts:
            if part.key in refused:
                continue
            try:
                num_rows = _write_part(writer.check if refused else writer.write, part, reader, task)
                rows_by_batch[part.key] += num_rows
            except (RawFileRefused, SchemaMismatch) as error:
                if not task.sets_aside:
                    raise
                if not refused:
                    writer.abort()
                refused[part.key] = str(error)
                if isinstance(error, RawFileNotAsListed):
                    not_as_listed.add(part.key)
        if refused:
            return WrittenFiles((), {}, refused, frozenset(not_as_listed))
        return WrittenFiles(tuple(writer.finish()), rows_by_batch)


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
    """Merge the staged rows into the table, which is created without rows first if there is none."""
    target = plan.snapshot
    with _pending(_store_of(plan), fragments).abandoned_on_failure():
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
    pending = _pending(snapshot.store, fragments)
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


def _write_part(put: Callable[[pa.RecordBatch], None], part: FilePart, reader: RawReader, task: IngestTask) -> int:
    """Put the rows of a file's part into the writer, or have it check them; return their number."""
    groups = "" if part.groups is None else f" (row groups {part.groups.start + 1} to {part.groups.stop})"
    checks = ValueChecks(schema_to_write(task.schema), task.required)
    for batch in task.fitting.rows(part.file, reader, part.groups):
        try:
            checks.check(batch)
            if task.batch_column is not None:
                batch = batch.append_column(task.batch_column, pa.repeat(part.key, batch.num_rows))
            put(batch)
        except InvalidInput as error:  # a `SchemaMismatch`, or a value that is no JSON or no blob
            raise SchemaMismatch(f"raw file {shown_uri(part.file.uri)}{groups}: {error}") from error
    return checks.num_rows


def discard(store: Store, outcome: WrittenFiles) -> None:
    """Delete the files that a task wrote."""
    _pending(store, outcome.fragments).abandon()


def _with_joined_dictionaries(
    store: Store, schema: Schema, fragments: tuple[Fragment, ...]
) -> tuple[Schema, PendingFiles]:
    """Return the schema with the dictionaries of all tasks, and the files."""
    with _pending(store, fragments).abandoned_on_failure():
        schema, fragments = join_dictionaries_of_fragments(store, schema, fragments)
    return schema, _pending(store, fragments)


def _store_of(plan: IngestPlan) -> Store:
    """Return the store in which the plan's tasks write rows."""
    return open_root(plan.destination.uri, plan.destination.storage_options).store


def _pending(store: Store, fragments: Iterable[Fragment]) -> PendingFiles:
    """Return the files of fragments that tasks wrote: `execute` makes them durable."""
    return PendingFiles.of_fragments(FileLocations(store), fragments)
