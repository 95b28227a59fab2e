"""Plan a write of Spark before any task: fit the schema of the rows to the table's, or plan how the table grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_ops import writing
from lance_ops.blobs import schema_to_write, with_blobs_as
from lance_ops.changing import columns
from lance_ops.core.arrow import empty_table
from lance_ops.core.blob_types import BLOB_KEY
from lance_ops.core.errors import DatasetAlreadyExists, InvalidInput, SchemaMismatch, UnsupportedFeature
from lance_ops.core.json import text_schema
from lance_ops.core.schema import Schema, SchemaMode, spelled_as
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source.options import SourceOptions
from lance_ops.spark.data_source.write_plan import WriteMode, WritePlan, is_replay, replaces_all, with_hint
from lance_ops.spark.translation import check_assignable, keep_types, schema_for_spark, schema_from_spark

if TYPE_CHECKING:
    from lance_ops.changing.columns import SchemaChange

__all__ = ["plan_write"]

_MOST_HINTED_CHANGES = 5
"""The most columns that a hint names."""


def plan_write(
    options: SourceOptions,
    schema: pa.Schema,
    mode: WriteMode = "append",
    *,
    keep_not_null: bool = False,
    grows_by: str | None = None,
    exact: bool = False,
    computed_from: Snapshot | None = None,
    after_casts: Callable[[pa.Schema], pa.Schema] | None = None,
) -> WritePlan:
    """Fit a DataFrame's schema to the table's, before any row is written.

    A relative path begins in this process's folder. All columns of a new schema are nullable; with `keep_not_null`
    those of `schema` that are not stay so. `grows_by` is the setting, as the user writes it, that lets the schema grow;
    errors name it where that helps. With `exact` a number that the table's type would round is refused. `after_casts`
    returns the schema that the rows have after Spark's casts to a table's schema. None: Spark casts nothing.
    `computed_from` is the version that the rows were computed from: the write replaces rows of this version alone. Its
    commit raises `RetryableConflict` or `TooManyConcurrentWriters` if another writer has changed them. By default it is
    the newest version, and after such a change the rows to replace are searched again.

    Raises `SchemaMismatch` naming the column that does not fit, `InvalidInput` for options that apply to reads or (as
    stable row ids) only to a new table, `UnsupportedFeature` for an append in another file version than the table's,
    `InvalidFilter` for a `replace_where` that does not fit the rows, and in mode `create` `DatasetAlreadyExists`.
    """
    if options.replace_where is not None and mode != "overwrite":
        raise InvalidInput(f"option {options.spelling('replace_where')!r} replaces rows: give it with mode 'overwrite'")
    if options.config and (mode == "append" or options.replace_where is not None):
        raise InvalidInput(
            f"option 'config.{next(iter(options.config))}' is for a write that creates or overwrites the whole table: "
            "LanceDataset.update_config sets keys of one that is there"
        )
    if not schema.names:
        raise SchemaMismatch("the rows to write have no column, and Spark passes none of them on: select at least one")
    options = options.with_full_uri()
    snapshot = options.open_to_write() if computed_from is None else computed_from
    if snapshot is None:
        _check_names_differ(schema.names, options)
        version = options.data_storage_version or FileVersion.V2_2
        table = writing.table_schema(
            schema_from_spark(schema, options.type_hints, keep_not_null=keep_not_null), version
        )
        plan = WritePlan(options, None, table, version, mode, exact=exact)
        plan.check_fits(schema)
        return plan
    if is_replay(options, snapshot):
        return WritePlan(options, snapshot.version, snapshot.schema, snapshot.file_version, mode, done=True)
    if mode == "create":
        raise DatasetAlreadyExists(f"{snapshot.uri}: mode 'append' adds rows to it, and 'overwrite' replaces them")
    schema = spelled_as(schema, text_schema(snapshot.schema.to_arrow_storage()), options.case_rule)
    if options.enable_stable_row_ids:
        writing.check_stable_row_ids(snapshot)
    version = options.data_storage_version or snapshot.file_version
    replaces_table = replaces_all(mode, options)
    if version is not snapshot.file_version and not replaces_table:
        raise UnsupportedFeature(
            f"appending files of version {version.value} to a table of {snapshot.file_version.value}", snapshot.uri
        )
    table, change = _changed(snapshot, schema, options, replaces_all=replaces_table, keep_not_null=keep_not_null)
    stored = text_schema(table.to_arrow_storage(), pa.string())
    rows = schema if after_casts is None else spelled_as(after_casts(stored), stored, options.case_rule)
    may_grow = grows_by is not None and options.schema_mode is None and not replaces_table
    hint = f"; or {grows_by} {growth}" if may_grow and (growth := _growth(snapshot, schema, options)) else ""
    plan = WritePlan(
        options,
        snapshot.version,
        table,
        version,
        mode,
        change=change,
        hint=hint,
        exact=exact,
        is_computed=computed_from is not None,
    )
    # Casting zero rows shows an impossible cast before a task starts.
    with with_hint(hint):
        empty = empty_table(rows)
        for name, column in zip(rows.names, empty.columns, strict=True):
            if name in stored.names:
                check_assignable(column.combine_chunks(), stored.field(name).type, name)
        writing.conform_to_schema(empty, schema_to_write(table))
        plan.check_fits(rows)
    return plan


def _growth(snapshot: Snapshot, schema: pa.Schema, options: SourceOptions) -> str:
    """Return how the table would grow to fit rows of this schema; an empty text if it would not."""
    shown = schema_for_spark(text_schema(snapshot.schema.to_arrow_storage()))
    if all(field.name in shown.names and field.type == shown.field(field.name).type for field in schema):
        return ""  # what plans a change is not loaded where there is none
    growing = replace(options, schema_mode=SchemaMode.ADD)
    try:
        table, change = _changed(snapshot, schema, growing, replaces_all=False, keep_not_null=False)
        if not change:
            return ""
        writing.conform_to_schema(empty_table(schema), schema_to_write(table))
    except (InvalidInput, SchemaMismatch, UnsupportedFeature):
        return ""
    changes = [f"adds {name}" for name in change.added.names]
    changes += [f"makes {name} {new_type}" for name, new_type in change.widened.items()]
    return ", ".join(changes if len(changes) <= _MOST_HINTED_CHANGES else [*changes[:_MOST_HINTED_CHANGES], "…"])


def _check_names_differ(names: Sequence[str], options: SourceOptions) -> None:
    """Raise `SchemaMismatch` for columns of a new table that no query could tell apart by the case rule."""
    spelled: dict[str, str] = {}
    for name in names:
        other = spelled.setdefault(name.lower(), name)
        if other != name and not options.case_sensitive:
            raise SchemaMismatch(
                f"columns {other}, {name} differ only in case: rename one, or give option 'case_sensitive' 'true' "
                "(spark.sql.caseSensitive)"
            )


def _changed(
    snapshot: Snapshot, schema: pa.Schema, options: SourceOptions, *, replaces_all: bool, keep_not_null: bool
) -> tuple[Schema, SchemaChange | None]:
    """Return the schema to write rows for, and what must change in the table before they are committed.

    An overwrite sets the schema itself. A column that looks the same in Spark keeps its type and metadata, unless the
    schema is to be overwritten.
    """
    mode = options.schema_mode or (None if replaces_all else SchemaMode.ERROR)
    if mode is SchemaMode.OVERWRITE and not replaces_all:
        name = options.spelling("overwrite_schema" if "overwrite_schema" in options.given else "schema_mode")
        where = options.spelling("replace_where")
        way = "with mode 'overwrite'" if options.replace_where is None else f"without {where!r}, which keeps rows"
        raise InvalidInput(f"option {name!r} replaces the schema: give it {way}")
    if mode is SchemaMode.ERROR:
        return snapshot.schema, None
    new = schema_from_spark(schema, options.type_hints, keep_not_null=keep_not_null)
    before = text_schema(snapshot.schema.to_arrow_storage())
    if mode is SchemaMode.ADD:
        change = columns.plan_schema_change(before, keep_types(new, before))
        return columns.changed_schema(snapshot, change), None if replaces_all else change
    if mode is None:  # a column of bytes in place of blobs is one of blobs
        marked = [with_blobs_as(field, pa.large_binary(), {BLOB_KEY: "true"}) for field in snapshot.schema.fields]
        new = keep_types(new, text_schema(pa.schema(marked)))
    return writing.table_schema(new, options.data_storage_version or snapshot.file_version), None
