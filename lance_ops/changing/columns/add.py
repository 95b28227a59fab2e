"""Add columns: computed by SQL or by a function, joined by key, read from a stream, or all null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lance_ops.changing.columns.backfill import check_batch_size, plan_backfill, run_backfill, write_streamed_columns
from lance_ops.changing.columns.column_file import ColumnFile, fragments_with_column_files, pending_columns
from lance_ops.changing.columns.column_sources import ColumnSource, ComputedColumns, JoinedColumns
from lance_ops.changing.columns.kept_files import KeptFiles
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.arrow import safe_to_take
from lance_ops.core.errors import InvalidInput, SchemaMismatch, UnsupportedFeature
from lance_ops.core.predicate import Assignment, parse_value, result_type
from lance_ops.core.schema import Schema, with_new_fields
from lance_ops.core.versions import FileVersion
from lance_ops.legacy import join_pending_dictionaries
from lance_ops.reading import ROW_ADDRESS, ROW_ID, schema_with_row_columns
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.transactions import Merge
from lance_ops.writing import commit_operation, conform_to_schema

__all__ = [
    "add_columns",
    "add_null_columns",
    "add_streamed_columns",
    "bind_computed",
    "bind_joined",
    "files_to_keep",
]

Properties = Mapping[str, str] | None


def add_columns(
    snapshot: Snapshot,
    added: pa.Schema,
    source: ColumnSource,
    runner: Runner,
    properties: Properties = None,
    batch_size: int | None = None,
    checkpoint: str | None = None,
) -> Snapshot:
    """Write the new columns of every fragment and commit; only the columns that `source` reads are read.

    With the name of a `checkpoint`, finished files stay when a task or the process fails, and a call with the same name
    takes them over. Columns that are all `CAST(NULL AS …)` change only the schema, as `add_null_columns` does.

    Raises `InvalidInput` for a name that exists or a value that cannot be computed, and `RetryableConflict` when a
    concurrent transaction added or changed fragments, or a clean-up removed files of the checkpoint: plan again on the
    newest version.
    """
    if isinstance(source, ComputedColumns) and all(each.is_typed_null for each in source.assignments):
        check_batch_size(batch_size)
        return add_null_columns(snapshot, added, properties)
    schema, columns = with_new_fields(snapshot.schema, added, snapshot.manifest.max_field_id + 1)
    kept = None if checkpoint is None else files_to_keep(snapshot, checkpoint, columns, source)
    tasks = plan_backfill(snapshot, columns, source, batch_size, kept)
    files = run_backfill(snapshot, tasks, runner, Job.on("add columns to", snapshot.uri, snapshot.version))
    if kept is None:
        return _commit(snapshot, schema, columns, files, properties)
    pending = pending_columns(snapshot, files).kept_on_failure()
    operation = _merge(schema, columns, fragments_with_column_files(snapshot, schema, files))
    kept.check_present(snapshot.store, files)
    committed = commit_operation(snapshot, operation, properties=properties, pending=pending)
    kept.remove(snapshot.store)
    return committed


def add_streamed_columns(
    snapshot: Snapshot,
    added: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    properties: Properties = None,
    batch_size: int | None = None,
) -> Snapshot:
    """Add columns from a stream with one row for each live row, in order; the errors are those of `add_columns`,
    and `SchemaMismatch` for another number of rows.

    Batches are written as they come; `batch_size` is only checked.
    """
    check_batch_size(batch_size)
    schema, columns = with_new_fields(snapshot.schema, added, snapshot.manifest.max_field_id + 1)
    return _commit(snapshot, schema, columns, write_streamed_columns(snapshot, columns, batches), properties)


def add_null_columns(snapshot: Snapshot, added: pa.Schema, properties: Properties = None) -> Snapshot:
    """Add columns that are all null, which changes only the schema. Raises `InvalidInput` for a non-nullable column."""
    strict = next((field.name for field in added if not field.nullable), None)
    if strict is not None:
        raise InvalidInput(f"column {strict!r} would be all null and allows no nulls")
    schema, columns = with_new_fields(snapshot.schema, added, snapshot.manifest.max_field_id + 1)
    return commit_operation(snapshot, _merge(schema, columns, snapshot.fragments), properties=properties)


def bind_computed(snapshot: Snapshot, expressions: Mapping[str, str]) -> tuple[pa.Schema, ComputedColumns]:
    """Parse the SQL expression of each new column; return their schema and the source that computes them.

    A column has the type that it has in the reference. Raises what `parse_value` raises, and `InvalidInput` for a name
    with half a surrogate pair, which Arrow cannot hold.
    """
    schema = schema_with_row_columns(snapshot)
    assignments = []
    for name, text in expressions.items():
        if any("\ud800" <= char <= "\udfff" for char in name):
            raise InvalidInput(f"column {name!r}: half of a surrogate pair is no character; rename the column")
        value = parse_value(text, schema)
        assignments.append(Assignment(name, result_type(value), value))
    fields = [pa.field(each.column, each.arrow_type) for each in assignments]
    return pa.schema(fields), ComputedColumns(tuple(assignments))


def bind_joined(snapshot: Snapshot, table: pa.Table, left_on: str, right_on: str) -> tuple[pa.Schema, JoinedColumns]:
    """Return the schema and the source of the new columns, which are those of `table` except its key.

    `left_on` is a column, or `_rowid` or `_rowaddr` for the id or address of the row. Raises `InvalidInput` if a key
    column does not exist, or if the two keys cannot be compared.
    """
    key_type = pa.uint64() if left_on in (ROW_ID, ROW_ADDRESS) else _type_of_key(snapshot, left_on)
    if right_on not in table.schema.names:
        raise InvalidInput(f"the data has no column {right_on!r} to join on; it has {', '.join(table.schema.names)}")
    try:  # a key that a cast would change must match no row
        keys = conform_to_schema(table.select([right_on]), pa.schema([pa.field(right_on, key_type)]))
    except SchemaMismatch as error:
        raise InvalidInput(f"columns {left_on!r} and {right_on!r} do not compare: {error}") from error
    values = keys.column(0).combine_chunks()
    rest = safe_to_take(table.drop_columns([right_on]))
    added = pa.schema([field.with_nullable(True) for field in rest.schema], rest.schema.metadata)
    return added, JoinedColumns(left_on, SourceKeys([values], [right_on]), rest)


def files_to_keep(snapshot: Snapshot, name: str, columns: Schema, source: ColumnSource) -> KeptFiles:
    """Return the files of the backfill under this name; raise if it has none, or the table's files cannot be kept."""
    if not name:
        raise InvalidInput("a checkpoint has a name")
    if snapshot.file_version is FileVersion.V0_1:
        raise UnsupportedFeature("a checkpoint of columns in files of version 0.1", snapshot.uri)
    return KeptFiles.of(name, columns, source.description)


def _type_of_key(snapshot: Snapshot, name: str) -> pa.DataType:
    key = snapshot.schema.field(name)
    if key.name != name or key not in snapshot.schema.fields:
        raise InvalidInput(f"column {name!r} is inside a struct and cannot be joined on")
    return key.arrow_type


def _commit(
    snapshot: Snapshot, schema: Schema, columns: Schema, files: Sequence[ColumnFile], properties: Properties
) -> Snapshot:
    with pending_columns(snapshot, files).abandoned_on_failure():
        schema, settled = join_pending_dictionaries(snapshot.store, schema, [each.file for each in files])
    files = [replace(each, file=file) for each, file in zip(files, settled, strict=True)]
    pending = pending_columns(snapshot, files)
    with pending.abandoned_on_failure():
        operation = _merge(schema, columns, fragments_with_column_files(snapshot, schema, files))
    return commit_operation(snapshot, operation, properties=properties, pending=pending)


def _merge(schema: Schema, columns: Schema, fragments: Iterable[Fragment]) -> Merge:
    return Merge(tuple(fragments), schema, all(field.nullable for field in columns.fields))
