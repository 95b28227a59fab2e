"""Plan an ingestion: which batches are new, which schema they get, and tasks of raw files."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import field, replace

import pyarrow as pa

from lance_ops.changing.columns import SchemaChange, changed_schema, plan_schema_change
from lance_ops.changing.merge_insert.by_tasks import new_folder
from lance_ops.committers import MANIFEST_STORE_OPTION, open_root
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema, SchemaMode, spelled_as
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance.batch_ledger import IngestedBatch, ingested_batches, tokens_of
from lance_ops.maintenance.ingest.by_key import KeyedBatches
from lance_ops.maintenance.ingest.planning.file_parts import FilePart, parts_of, share_parts
from lance_ops.maintenance.ingest.planning.ingest_options import (
    BadBatches,
    ChangedBatches,
    IngestMode,
    IngestOptions,
)
from lance_ops.maintenance.ingest.raw_files import IngestBatch, RawReading
from lance_ops.maintenance.ingest.raw_rows import RowFitting, plain_schema
from lance_ops.maintenance.ingest.raw_schemas import FoundSchemas, unified_raw_schema
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.writing import FragmentLimits, check_stable_row_ids, table_schema

__all__ = ["BatchesChanged", "IngestPlan", "IngestTask", "plan_ingest"]


class BatchesChanged(InvalidInput):
    """Batches that were ingested with other content. `versions` has the version of each key, and `reasons` a text."""

    def __init__(self, versions: Mapping[str, int]) -> None:
        self.versions = dict(versions)
        self.reasons = {
            key: f"batch {key!r} was ingested in version {version} with other content: delete its rows and give the "
            "new files a key of their own, restore the files as they were, or replace its rows"
            for key, version in versions.items()
        }
        first, *others = self.reasons.values()
        super().__init__(f"{first} (as {len(others)} other batches)" if others else first)

    def __reduce__(self) -> tuple[type[BatchesChanged], tuple[dict[str, int]]]:
        return type(self), (self.versions,)


@dataclass(frozen=True)
class IngestTask:
    """Parts of raw files to write as fragments of a table with this schema.

    The files are refused if a row has no value of a `required` column.
    """

    uri: str
    parts: tuple[FilePart, ...]
    schema: Schema
    file_version: FileVersion
    limits: FragmentLimits
    reading: RawReading
    fitting: RowFitting
    batch_column: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    raw_storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    sets_aside: bool = False
    required: tuple[str, ...] = ()

    @property
    def batch_keys(self) -> tuple[str, ...]:
        """The key of each part's batch."""
        return tuple(part.key for part in self.parts)

    def without(self, keys: Container[str]) -> IngestTask:
        """Return the task without the files of these batches."""
        return replace(self, parts=tuple(part for part in self.parts if part.key not in keys))


@dataclass(frozen=True)
class IngestPlan:
    """The batches that are new at `snapshot` (None: the table must be created), and the tasks that write them.

    `change` is what the table's schema needs first to become `schema`. `replaced` are the keys of the batches whose
    rows of before leave the table. With a `stage` the tasks write rows for it, which are then merged.
    """

    uri: str
    snapshot: Snapshot | None
    schema: Schema
    file_version: FileVersion
    batches: tuple[IngestBatch, ...]
    skipped: tuple[str, ...]
    tasks: tuple[IngestTask, ...]
    stable_row_ids: bool = False
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    change: SchemaChange = field(default_factory=SchemaChange)
    overwrites: bool = False
    replaced: tuple[str, ...] = ()
    batch_column: str | None = None
    stage: KeyedBatches | None = None

    @property
    def destination(self) -> IngestPlan | KeyedBatches:
        """Where the tasks write rows: the stage if there is one, or the table."""
        return self.stage or self

    @property
    def takes_schema_of_files(self) -> bool:
        """Whether the files may decide about the table's schema."""
        return self.snapshot is None or self.overwrites or bool(self.change)

    @property
    def job(self) -> Job:
        """What the tasks do together, each weighed by the bytes of its raw files."""
        return self.job_of(self.tasks)

    def job_of(self, tasks: Sequence[IngestTask]) -> Job:
        """What these tasks do together; see `job`."""
        weights = tuple(sum(part.size_bytes for part in task.parts) for task in tasks)
        return Job.on("ingest into", self.uri, self.snapshot.version if self.snapshot else None, weights, unit="bytes")

    def without(self, keys: Container[str]) -> IngestPlan:
        """Return the plan without these batches; its tasks stay as they are."""
        batches = tuple(batch for batch in self.batches if batch.key not in keys)
        return replace(self, batches=batches, replaced=tuple(key for key in self.replaced if key not in keys))


def plan_ingest(
    uri: str,
    batches: Sequence[IngestBatch],
    *,
    storage_options: Mapping[str, str] | None = None,
    raw_storage_options: Mapping[str, str] | None = None,
    options: IngestOptions | None = None,
    runner: Runner | None = None,
    version: int | None = None,
    schemas: FoundSchemas | None = None,
) -> IngestPlan:
    """Skip the batches that the table holds and share the files of the others among tasks.

    Where the files decide about the schema, tasks of `runner` find their columns first, but for files in `schemas`.
    Files longer than what a task reads are cut into parts by their row groups, which tasks of `runner` find.
    `version` is the one to plan on, by default the newest; 0 is that of a table that does not exist. The plan names the
    table by a URI and options that mean the same in every process.
    """
    root = open_root(uri, storage_options)
    uri, storage_options = root.store.uri, root.storage_options
    options = options or IngestOptions()
    keys = [batch.key for batch in batches]
    if len(set(keys)) != len(keys):
        raise InvalidInput(f"batches named twice: {sorted({key for key in keys if keys.count(key) > 1})}")
    snapshot = (
        Snapshot.open(uri, version, storage_options)
        if version
        else None
        if version == 0
        else Snapshot.open_if_exists(uri, storage_options)
    )
    new, replaced = _new_batches(batches, ingested_batches(snapshot) if snapshot else {}, options)
    files = [(batch.key, file) for batch in new for file in batch.files]
    raw_options = dict(raw_storage_options or {})
    file_version = FileVersion.parse(options.data_storage_version) if snapshot is None else snapshot.file_version
    if snapshot is not None and options.enable_stable_row_ids:
        check_stable_row_ids(snapshot)

    def declared_or_found(table: pa.Schema | None) -> pa.Schema:
        if options.schema is not None:
            return options.schema if table is None else spelled_as(options.schema, table, options.case_rule)
        return unified_raw_schema(
            [file for _, file in files],
            raw_options,
            options.reading,
            table=table,
            types=options.column_types,
            case_rule=options.case_rule,
            most_decide=options.schema_mode is SchemaMode.ERROR,
            mixed_as_text=False,
            file_version=file_version,
            runner=runner,
            job=Job.on("read the columns for", uri),
            known=schemas,
        )

    if files:
        schema, change = _schema_of(snapshot, file_version, options, declared_or_found)
    elif snapshot is not None:
        schema, change = snapshot.schema, SchemaChange()
    else:
        raise InvalidInput(f"{uri}: no batches to create the table from")
    _check_columns(uri, plain_schema(schema), options)
    kept = {batch.key for batch in new}
    plan = IngestPlan(
        uri=uri,
        snapshot=snapshot,
        schema=schema,
        file_version=file_version,
        batches=new,
        skipped=tuple(key for key in keys if key not in kept),
        tasks=(),
        stable_row_ids=options.enable_stable_row_ids,
        storage_options=storage_options,
        change=change,
        overwrites=snapshot is not None and options.schema_mode is SchemaMode.OVERWRITE,
        replaced=replaced,
        batch_column=options.batch_column,
        stage=_stage_of(uri, schema, file_version, options, storage_options),
    )
    most_bytes = max(options.max_bytes_per_task, 1)
    look = Job.on("find the row groups for", uri)
    parts = parts_of(files, most_bytes, options.reading, raw_options, runner or InThreads(1), look)
    shares = share_parts(parts, most_bytes, options.max_files_per_task)
    task = _task_of(plan, options, raw_options)
    return replace(plan, tasks=tuple(replace(task, parts=tuple(share)) for share in shares))


def _schema_of(
    snapshot: Snapshot | None,
    file_version: FileVersion,
    options: IngestOptions,
    declared_or_found: Callable[[pa.Schema | None], pa.Schema],
) -> tuple[Schema, SchemaChange]:
    """Return the schema to write rows for, and how the table's schema becomes it.

    `declared_or_found` returns the columns of a table, if there is one, and of the raw files.
    """
    if snapshot is None or options.schema_mode is SchemaMode.OVERWRITE:
        return table_schema(_with_own_columns(declared_or_found(None), options), file_version), SchemaChange()
    if options.schema_mode is SchemaMode.ERROR:
        return snapshot.schema, SchemaChange()
    before = plain_schema(snapshot.schema)
    given = declared_or_found(_without(before, options.own_columns))
    change = plan_schema_change(before, _with_own_columns(given, options))
    return changed_schema(snapshot, change), change


def _task_of(plan: IngestPlan, options: IngestOptions, raw_storage_options: Mapping[str, str]) -> IngestTask:
    """Return a task of the plan, without files."""
    table = _without(plain_schema(plan.schema), options.own_columns)
    return IngestTask(
        uri=plan.destination.uri,
        parts=(),
        schema=plan.destination.schema,
        file_version=plan.destination.file_version,
        limits=options.limits,
        reading=options.reading,
        fitting=RowFitting(table, options.case_rule, options.missing_columns, options.extra_columns),
        batch_column=options.batch_column,
        storage_options=plan.destination.storage_options,
        raw_storage_options=raw_storage_options,
        sets_aside=options.bad_batches is BadBatches.SET_ASIDE,
        required=options.required_columns,
    )


def _stage_of(
    uri: str,
    schema: Schema,
    version: FileVersion,
    options: IngestOptions,
    storage_options: Mapping[str, str],
) -> KeyedBatches | None:
    """Return how staged rows are merged, if they are.

    The stage has the table's columns but for those of a history's end.
    """
    if options.mode is IngestMode.APPEND:
        return None
    history = options.history if options.mode is IngestMode.HISTORY else None
    derived = history.derived if history else ()
    names = [f"`{name}`" if "." in name else name for name in schema.names if name not in derived]
    return KeyedBatches(
        uri=f"{uri}/{new_folder()}",
        schema=schema.project(names),
        # Dictionaries of files of version 0.1 would need a commit of their own.
        file_version=FileVersion.V2_0 if version is FileVersion.V0_1 else version,
        fragments=(),
        keys=options.keys,
        history=history,
        batch_column=options.batch_column,
        storage_options={key: value for key, value in storage_options.items() if key != MANIFEST_STORE_OPTION},
    )


def _new_batches(
    batches: Sequence[IngestBatch], ingested: Mapping[str, IngestedBatch], options: IngestOptions
) -> tuple[tuple[IngestBatch, ...], tuple[str, ...]]:
    """Return the batches to ingest, and the keys of those whose rows of before must leave the table.

    Raises `BatchesChanged` for all batches that were ingested with other content, unless their rows are replaced.
    """
    if options.schema_mode is SchemaMode.OVERWRITE:
        held = {batch.key: batch.token for batch in batches} == tokens_of(ingested)
        return () if held else tuple(batches), ()
    known = [batch for batch in batches if batch.key in ingested]
    changed = [batch.key for batch in known if ingested[batch.key].token != batch.token]
    if changed and options.changed_batches is not ChangedBatches.REPLACE:
        raise BatchesChanged({key: ingested[key].version for key in changed})
    unchanged = {batch.key for batch in known}.difference(changed)
    return tuple(batch for batch in batches if batch.key not in unchanged), tuple(changed)


def _with_own_columns(schema: pa.Schema, options: IngestOptions) -> pa.Schema:
    """Return the schema with the columns that ingestion fills; raise `InvalidInput` without a history's beginning."""
    own: dict[str, pa.DataType] = {} if options.batch_column is None else {options.batch_column: pa.string()}
    if options.mode is IngestMode.HISTORY:
        history = options.history
        if history.valid_from not in schema.names:
            raise InvalidInput(f"the raw files have no column {history.valid_from!r}, where a row's history begins")
        own |= {history.valid_to: schema.field(history.valid_from).type, history.current: pa.bool_()}
    return pa.schema([*schema, *(pa.field(name, kind) for name, kind in own.items() if name not in schema.names)])


def _without(schema: pa.Schema, names: Container[str]) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in names])


def _check_columns(uri: str, table: pa.Schema, options: IngestOptions) -> None:
    """Raise `InvalidInput` if the table lacks a column that ingestion reads or fills."""
    if options.batch_column is not None:
        _check_batch_column(uri, table, options.batch_column)
    for name in (*options.required_columns, *options.own_columns):
        if name not in table.names:
            raise InvalidInput(f"{uri}: the table has no column {name!r}, which mode {options.mode.value!r} needs")


def _check_batch_column(uri: str, table: pa.Schema, name: str) -> None:
    if name not in table.names:
        raise InvalidInput(f"{uri}: the table has no column {name!r} for the batches' keys: use schema mode 'add'")
    if table.field(name).type not in (pa.string(), pa.large_string(), pa.string_view()):
        raise InvalidInput(f"{uri}: column {name!r} is {table.field(name).type}, and keys of batches are texts")
