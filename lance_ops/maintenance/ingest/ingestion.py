"""Append raw files, each batch exactly once.

    plan_ingest(uri, batches, …) -> IngestPlan      which batches are new, the schema, tasks of raw files
    execute(task) -> WrittenFiles                   any process: raw files in, fragments out
    commit_ingest(plan, outcomes) -> IngestResult   one Append (an Overwrite creates the table)

All batches of a call become one version. Its transaction records each batch's token, and a batch whose token is in the
table's history is not ingested again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lance_ops.committers import open_root
from lance_ops.core.errors import DatasetAlreadyExists, InvalidInput, RetryableConflict, SchemaMismatch
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.legacy import join_dictionaries_of_fragments
from lance_ops.maintenance.batch_ledger import IngestedBatch, batch_properties, ingested_batches
from lance_ops.maintenance.cleanup import clean_up_if_due
from lance_ops.maintenance.ingest.raw_files import IngestBatch, RawFile, RawReader, RawReading, unified_raw_schema
from lance_ops.maintenance.ingest.raw_names import shown_uri
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import Fragment
from lance_ops.table.manifest import FileLocations
from lance_ops.transactions import Append, PendingFiles
from lance_ops.writing import (
    FragmentLimits,
    FragmentWriter,
    check_stable_row_ids,
    commit_operation,
    create_dataset,
    table_schema,
)

__all__ = [
    "IngestBatch",
    "IngestOptions",
    "IngestPlan",
    "IngestResult",
    "IngestTask",
    "RawFile",
    "WrittenFiles",
    "commit_ingest",
    "discard",
    "execute",
    "ingest",
    "plan_ingest",
]

_CONFLICT_RETRIES = 10


@dataclass(frozen=True)
class IngestOptions:
    """Schema and format of a table to create, limits of fragments, how to read raw files, and how much a task reads."""

    schema: pa.Schema | None = None
    data_storage_version: str = "stable"
    enable_stable_row_ids: bool = False
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    reading: RawReading = field(default_factory=RawReading)
    max_bytes_per_task: int = 256 * 1024**2
    max_files_per_task: int = 64


@dataclass(frozen=True)
class IngestTask:
    """Raw files to write as fragments of a table with this schema."""

    uri: str
    files: tuple[RawFile, ...]
    schema: Schema
    file_version: FileVersion
    limits: FragmentLimits
    reading: RawReading
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    raw_storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class WrittenFiles:
    """The fragments that a task wrote, not yet in any version, and the number of rows of each raw file."""

    fragments: tuple[Fragment, ...]
    rows_by_file: Mapping[str, int]


@dataclass(frozen=True)
class IngestPlan:
    """The batches that are new at `snapshot` (None: the table must be created), and the tasks that write them."""

    uri: str
    snapshot: Snapshot | None
    schema: Schema
    file_version: FileVersion
    batches: tuple[IngestBatch, ...]
    skipped: tuple[str, ...]
    tasks: tuple[IngestTask, ...]
    stable_row_ids: bool = False
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def job(self) -> Job:
        """What the tasks do together, each weighed by the bytes of its raw files."""
        weights = tuple(sum(file.size_bytes for file in task.files) for task in self.tasks)
        return Job.on("ingest into", self.uri, self.snapshot.version if self.snapshot else None, weights)


@dataclass(frozen=True)
class IngestResult:
    """What an ingestion did; `version` is None if the table already held every batch."""

    version: int | None
    num_rows: int
    num_fragments: int
    ingested: tuple[str, ...]
    skipped: tuple[str, ...]
    rows_by_batch: Mapping[str, int] = field(default_factory=dict)


def ingest(
    uri: str,
    batches: Sequence[IngestBatch],
    *,
    storage_options: Mapping[str, str] | None = None,
    raw_storage_options: Mapping[str, str] | None = None,
    options: IngestOptions | None = None,
    runner: Runner | None = None,
) -> IngestResult:
    """Append the batches that are not in the table yet, as one version.

    Raises `InvalidInput` for a batch that was ingested with other content, `RawFileRefused` for a raw file that is not
    read, and `SchemaMismatch` naming the file and field that do not fit; the table is then unchanged.
    """
    for attempt in range(_CONFLICT_RETRIES + 1):
        plan = plan_ingest(
            uri, batches, storage_options=storage_options, raw_storage_options=raw_storage_options, options=options
        )
        store = open_root(uri, storage_options).store
        outcomes = (runner or InThreads()).map(execute, plan.tasks, plan.job, partial(discard, store))
        try:
            return commit_ingest(plan, outcomes)
        except (RetryableConflict, DatasetAlreadyExists):  # another run ingested a batch, or created the table
            if attempt == _CONFLICT_RETRIES:
                raise
    raise AssertionError("the loop returns or raises")


def plan_ingest(
    uri: str,
    batches: Sequence[IngestBatch],
    *,
    storage_options: Mapping[str, str] | None = None,
    raw_storage_options: Mapping[str, str] | None = None,
    options: IngestOptions | None = None,
) -> IngestPlan:
    """Skip the batches that the table holds and share the files of the others among tasks."""
    options = options or IngestOptions()
    keys = [batch.key for batch in batches]
    if len(set(keys)) != len(keys):
        raise InvalidInput(f"batches named twice: {sorted({key for key in keys if keys.count(key) > 1})}")
    snapshot = Snapshot.open_if_exists(uri, storage_options)
    ingested = ingested_batches(snapshot) if snapshot else {}
    new = tuple(batch for batch in batches if _is_new(batch, ingested))
    files = [file for batch in new for file in batch.files]
    raw_options = dict(raw_storage_options or {})
    if snapshot is not None:
        if options.enable_stable_row_ids:
            check_stable_row_ids(snapshot)
        schema, version = snapshot.schema, snapshot.file_version
    elif files:
        version = FileVersion.parse(options.data_storage_version)
        schema = table_schema(options.schema or unified_raw_schema(files, raw_options, options.reading), version)
    else:
        raise InvalidInput(f"{uri}: no batches to create the table from")
    tasks = tuple(
        IngestTask(
            uri, group, schema, version, options.limits, options.reading, dict(storage_options or {}), raw_options
        )
        for group in _shares(files, options)
    )
    kept = {batch.key for batch in new}
    skipped = tuple(key for key in keys if key not in kept)
    stable = options.enable_stable_row_ids
    return IngestPlan(uri, snapshot, schema, version, new, skipped, tasks, stable, dict(storage_options or {}))


def execute(task: IngestTask) -> WrittenFiles:
    """Write the task's raw files, in order, as fragments."""
    store = open_root(task.uri, task.storage_options).store
    rows_by_file: dict[str, int] = {}
    with (
        RawReader(task.raw_storage_options, task.reading) as reader,
        FragmentWriter(store, task.schema, task.file_version, task.limits) as writer,
    ):
        for file in task.files:
            rows_by_file[file.uri] = _write_file(writer, file, reader)
        return WrittenFiles(tuple(writer.finish()), rows_by_file)


def commit_ingest(plan: IngestPlan, outcomes: Sequence[WrittenFiles]) -> IngestResult:
    """Commit the fragments that the tasks wrote.

    Raises `RetryableConflict` if a concurrent commit ingested one of the batches; the new files are then deleted.
    """
    if not plan.batches:
        return IngestResult(None, 0, 0, (), plan.skipped)
    fragments = tuple(fragment for outcome in outcomes for fragment in outcome.fragments)
    rows_by_file = {uri: rows for outcome in outcomes for uri, rows in outcome.rows_by_file.items()}
    properties = batch_properties({batch.key: batch.token for batch in plan.batches})
    if plan.snapshot is None:
        root = open_root(plan.uri, plan.storage_options)
        with _pending(root.store, fragments).abandoned_on_failure():
            schema, fragments = join_dictionaries_of_fragments(root.store, plan.schema, fragments)
        committed = create_dataset(
            root,
            schema,
            _pending(root.store, fragments),
            plan.file_version,
            stable_row_ids=plan.stable_row_ids,
            properties=properties,
        )
    else:
        pending = _pending(plan.snapshot.store, fragments)
        committed = commit_operation(plan.snapshot, Append(fragments), properties=properties, pending=pending)
        clean_up_if_due(plan.snapshot.version, committed)
    return IngestResult(
        committed.version,
        sum(fragment.physical_rows for fragment in fragments),
        len(fragments),
        tuple(batch.key for batch in plan.batches),
        plan.skipped,
        {batch.key: sum(rows_by_file[file.uri] for file in batch.files) for batch in plan.batches},
    )


def _write_file(writer: FragmentWriter, file: RawFile, reader: RawReader) -> int:
    num_rows = 0
    for batch in reader.batches(file):
        try:
            writer.write(batch)
        except SchemaMismatch as error:
            raise SchemaMismatch(f"raw file {shown_uri(file.uri)}: {error}") from error
        num_rows += batch.num_rows
    return num_rows


def _is_new(batch: IngestBatch, ingested: Mapping[str, IngestedBatch]) -> bool:
    found = ingested.get(batch.key)
    if found is None:
        return True
    if found.token != batch.token:
        raise InvalidInput(
            f"batch {batch.key!r} was ingested in version {found.version} with other content: delete its rows and "
            "give the new files a key of their own, or restore the files as they were"
        )
    return False


def _shares(files: Sequence[RawFile], options: IngestOptions) -> Iterator[tuple[RawFile, ...]]:
    share: list[RawFile] = []
    size = 0
    for file in files:
        full = len(share) >= options.max_files_per_task or size + file.size_bytes > options.max_bytes_per_task
        if share and full:
            yield tuple(share)
            share, size = [], 0
        share.append(file)
        size += file.size_bytes
    if share:
        yield tuple(share)


def discard(store: Store, outcome: WrittenFiles) -> None:
    """Delete the files that a task wrote."""
    _pending(store, outcome.fragments).abandon()


def _pending(store: Store, fragments: Iterable[Fragment]) -> PendingFiles:
    """Return the files of fragments that tasks wrote: `execute` makes them durable."""
    return PendingFiles.of_fragments(FileLocations(store), fragments)
