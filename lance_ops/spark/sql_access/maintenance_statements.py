"""OPTIMIZE, VACUUM, VERIFY, RESTORE, indices, and what is told about a table.

Where Delta has the statement, too, the result has the columns of Delta's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lance_ops.api import LanceDataset
from lance_ops.core.errors import IndexNotFound, InvalidInput, UnsupportedFeature
from lance_ops.core.json import text_schema
from lance_ops.maintenance.health import timeline
from lance_ops.spark.sql_access.statement import Statement, read_switch
from lance_ops.spark.sql_access.table_references import read_version_clause
from lance_ops.spark.translation import schema_for_spark

__all__ = ["MAINTENANCE_STATEMENTS"]

_IN = ("IN", "ON", "FROM")
_OPTIMIZE_OPTIONS: dict[str, Callable[[str], Any]] = {
    "target_rows_per_fragment": int,
    "max_bytes_per_file": int,
    "materialize_deletions_threshold": float,
    "max_source_fragments": int,
    "max_source_rows": int,
    "max_source_bytes": int,
    "max_commits": int,
    "max_seconds": float,
    "worst_first": read_switch,
}
_REFUSES_TAGGED = "error_if_tagged_old_versions"
_VACUUM_OPTIONS: dict[str, Callable[[str], Any]] = {
    "retain_versions": int,
    "delete_rate_limit": int,
    _REFUSES_TAGGED: read_switch,
}
_HISTORY = (
    "version bigint, timestamp timestamp, operation string, operationMetrics map<string, bigint>, "
    "tags array<string>, userMetadata map<string, string>"
)
_DETAIL = (
    "format string, location string, version bigint, lastModified timestamp, numFragments bigint, numFiles bigint, "
    "numRows bigint, sizeInBytes bigint, dataStorageVersion string, properties map<string, string>"
)
_METRICS = (
    "path string, metrics struct<fragmentsAdded: bigint, fragmentsRemoved: bigint, filesAdded: bigint, "
    "filesRemoved: bigint>"
)
_REMOVED = (
    "path string, metrics struct<bytesRemoved: bigint, versionsRemoved: bigint, dataFilesRemoved: bigint, "
    "deletionFilesRemoved: bigint, indexFilesRemoved: bigint, transactionFilesRemoved: bigint>"
)
_STATISTICS = (
    "col_name string, data_type string, num_rows bigint, num_nulls bigint, min string, max string, "
    "distinct_count bigint"
)
_FINDINGS = "severity string, kind string, path string, fragment bigint, column string, detail string"
_INDICES = "name string, type string, columns array<string>, numIndexedRows bigint, numUnindexedRows bigint"


def _optimize(statement: Statement) -> DataFrame | None:
    """OPTIMIZE t [ZORDER BY | SORT BY (columns)] [WITH (option = value, …)]; see `_OPTIMIZE_OPTIONS`."""
    reader = statement.reader
    table = statement.table()
    if table is None:
        return None
    opened = statement.tables.open(table)
    options: dict[str, Any] = {}
    if reader.peek("WHERE"):
        raise UnsupportedFeature("OPTIMIZE … WHERE (bound the work by WITH (max_source_fragments = n))")
    for keyword, order in (("ZORDER", "z_order"), ("SORT", "linear")):
        if reader.accept(keyword, "BY"):
            options |= {"cluster_by": statement.column_paths(opened), "cluster_order": order}
            break
    options |= statement.options("OPTIMIZE", _OPTIMIZE_OPTIONS)
    reader.end()
    done = opened.optimize.compact_files(**options, runner=statement.runner)
    metrics = (done.fragments_added, done.fragments_removed, done.files_added, done.files_removed)
    return statement.result(_METRICS, [(opened.uri, metrics)])


def _vacuum(statement: Statement) -> DataFrame | None:
    """VACUUM t [RETAIN n HOURS] [WITH (option = value, …)] [DRY RUN]; see `_VACUUM_OPTIONS`.

    Without RETAIN and `retain_versions` versions younger than two weeks are kept. Versions with a tag stay, or with
    `error_if_tagged_old_versions` refuse the statement. DRY RUN lists every file.
    """
    reader = statement.reader
    table = statement.table()
    if table is None:
        return None
    age = None
    if reader.accept("RETAIN"):
        age = timedelta(hours=reader.number("a number of hours"))
        if not reader.accept_any("HOURS", "HOUR"):
            raise reader.error("HOURS")
    options = {_REFUSES_TAGGED: False, **statement.options("VACUUM", _VACUUM_OPTIONS)}
    is_dry = reader.accept("DRY", "RUN")
    reader.end()
    opened = statement.tables.open(table)
    if is_dry:
        found = opened.explain_cleanup_old_versions(
            age, **options, include_files=True, max_files=sys.maxsize, runner=statement.runner
        )
        return statement.result("path string", [(path,) for path in found.candidate_files])
    done = opened.cleanup_old_versions(age, **options, runner=statement.runner)
    removed = (
        *(done.bytes_removed, done.old_versions, done.data_files_removed),
        *(done.deletion_files_removed, done.index_files_removed, done.transaction_files_removed),
    )
    return statement.result(_REMOVED, [(opened.uri, removed)])


def _verify(statement: Statement) -> DataFrame:
    """VERIFY [TABLE] t [QUICK]: what is damaged, or could not be checked; QUICK does not read the values."""
    reader = statement.reader
    reader.accept("TABLE")
    opened = statement.tables.open(statement.lance_table())
    level = "quick" if reader.accept("QUICK") else "full"
    reader.end()
    found = opened.verify(level=level, runner=statement.runner).findings
    rows = [
        (each.severity.value, each.kind.value, each.path, each.fragment_id, each.column, each.detail) for each in found
    ]
    return statement.result(_FINDINGS, rows)


def _analyze(statement: Statement) -> DataFrame | None:
    """ANALYZE TABLE t COMPUTE STATISTICS [FOR ALL COLUMNS | FOR COLUMNS a, b]: tasks measure the columns.

    Nothing is stored. Without FOR COLUMNS, they measure the top-level columns whose values have an order.
    `distinct_count` is an estimate.
    """
    reader = statement.reader
    table = statement.table()
    if table is None:
        return None
    opened = statement.tables.open(table)
    reader.expect("COMPUTE", "STATISTICS")
    names = None
    if not (reader.ended or reader.accept("FOR", "ALL", "COLUMNS")):
        reader.expect("FOR", "COLUMNS")
        names = statement.column_paths(opened)
    reader.end()
    measured = opened.stats.column_stats(names, runner=statement.runner)
    types = {field.name: field.dataType.simpleString() for field in _shown_columns(opened)}
    rows = [
        (name, types[name], each.num_rows, each.num_nulls, _text(each.min), _text(each.max), each.num_distinct)
        for name, each in measured.items()
    ]
    return statement.result(_STATISTICS, rows)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _restore(statement: Statement) -> DataFrame | None:
    """RESTORE [TABLE] t TO VERSION AS OF n | TIMESTAMP AS OF moment."""
    reader = statement.reader
    reader.accept("TABLE")
    table = statement.table()
    if table is None:
        return None
    reader.expect("TO")
    clause = read_version_clause(reader)
    if clause is None:
        raise reader.error("VERSION AS OF or TIMESTAMP AS OF")
    reader.end()
    newest, opened = statement.tables.open(table), statement.tables.open(table, clause)
    if opened.uri != newest.uri:
        raise InvalidInput(
            f"RESTORE of {newest.uri} to a version of {opened.uri}: a branch has versions of its own, so restore it by "
            f"its path (RESTORE lance.`{opened.uri}` TO VERSION AS OF {opened.version})"
        )
    restored = opened.version
    opened.restore()
    return statement.result("version bigint, restored_version bigint", [(opened.version, restored)])


def _create_index(statement: Statement) -> DataFrame:
    """CREATE INDEX [IF NOT EXISTS] name ON [TABLE] t [USING kind] (column) [USING kind]; by default a BTREE."""
    reader = statement.reader
    keep = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name("the index's name")
    reader.expect("ON")
    reader.accept("TABLE")
    opened = statement.tables.open(statement.lance_table())
    kind = reader.name("the kind of index") if reader.accept("USING") else None
    reader.expect("(")
    column = statement.column_path(opened)
    reader.expect(")")
    if kind is None and reader.accept("USING"):
        kind = reader.name("the kind of index")
    reader.end()
    there = any(index["name"] == name for index in opened.list_indices())
    if there and not keep:
        raise InvalidInput(f"{opened.uri} has an index {name!r}: DROP INDEX, or REFRESH INDEX to extend it to new rows")
    if not there:
        opened.create_scalar_index(column, (kind or "BTREE").upper(), name, runner=statement.runner)
    return statement.nothing()


def _refresh_index(statement: Statement) -> DataFrame:
    """REFRESH INDEX | INDEXES | INDICES [name] ON t: extend one index, or all, to the rows that it does not cover."""
    reader = statement.reader
    name = None if reader.peek("ON") else reader.name("the index's name")
    opened = statement.opened_after("ON")
    if name is not None and not any(index["name"] == name for index in opened.list_indices()):
        known = ", ".join(index["name"] for index in opened.list_indices())
        raise IndexNotFound(f"{opened.uri} has no index {name!r}: there are {known or 'none'}")
    opened.optimize.optimize_indices(index_names=None if name is None else [name], runner=statement.runner)
    return statement.nothing()


def _drop_index(statement: Statement) -> DataFrame:
    """DROP INDEX [IF EXISTS] name ON t."""
    reader = statement.reader
    quiet = reader.accept("IF", "EXISTS")
    name = reader.name("the index's name")
    opened = statement.opened_after("ON")
    if not quiet or any(index["name"] == name for index in opened.list_indices()):
        opened.drop_index(name)
    return statement.nothing()


def _show_indices(statement: Statement) -> DataFrame:
    """SHOW INDEX | INDEXES | INDICES IN t."""
    opened = statement.opened_after(*_IN)
    rows = []
    for index in opened.describe_indices():
        known = opened.index_statistics(index.name)
        columns = list(index.field_names)
        rows.append((index.name, index.index_type, columns, known["num_indexed_rows"], known["num_unindexed_rows"]))
    return statement.result(_INDICES, rows)


def _history(statement: Statement) -> DataFrame | None:
    """DESCRIBE HISTORY t [LIMIT n]: the retained versions, newest first."""
    reader = statement.reader
    table = statement.table()
    if table is None:
        return None
    limit = reader.number("a number of versions") if reader.accept("LIMIT") else None
    reader.end()
    rows = [
        (
            *(each.version, each.timestamp, each.operation),
            {
                "numRows": each.num_rows,
                "numFragments": each.num_fragments,
                "numDeletedRows": each.num_deleted_rows,
                "sizeInBytes": each.size_bytes,
            },
            *(list(each.tags), dict(each.transaction_properties)),
        )
        for each in reversed(timeline(statement.tables.open(table).snapshot, limit))
    ]
    return statement.result(_HISTORY, rows)


def _detail(statement: Statement) -> DataFrame | None:
    """DESCRIBE DETAIL t."""
    table = statement.table()
    if table is None:
        return None
    statement.reader.end()
    opened = statement.tables.open(table)
    fragments = opened.snapshot.fragments
    files = [file for fragment in fragments for file in fragment.files]
    row = (
        *("lance", opened.uri, opened.version, opened.snapshot.manifest.timestamp, len(fragments), len(files)),
        *(
            opened.count_rows(),
            sum(file.file_size_bytes for file in files),
            opened.data_storage_version,
            opened.config(),
        ),
    )
    return statement.result(_DETAIL, [row])


def _columns(statement: Statement) -> DataFrame | None:
    """DESCRIBE [TABLE] [EXTENDED] t: the columns and their types in Spark."""
    statement.reader.accept_any("EXTENDED", "FORMATTED")
    table = statement.table()
    if table is None:
        return None
    statement.reader.end()
    shown = _shown_columns(statement.tables.open(table))
    rows = [(field.name, field.dataType.simpleString(), None) for field in shown]
    return statement.result("col_name string, data_type string, comment string", rows)


def _shown_columns(opened: LanceDataset) -> StructType:
    """Return the columns as Spark sees them."""
    return from_arrow_schema(schema_for_spark(text_schema(opened.snapshot.schema.to_arrow_storage())))


MAINTENANCE_STATEMENTS = (
    (("OPTIMIZE",), _optimize),
    (("VACUUM",), _vacuum),
    (("VERIFY",), _verify),
    (("ANALYZE", "TABLE"), _analyze),
    (("RESTORE",), _restore),
    (("CREATE", "INDEX"), _create_index),
    (("REFRESH", "INDEX"), _refresh_index),
    (("REFRESH", "INDEXES"), _refresh_index),
    (("REFRESH", "INDICES"), _refresh_index),
    (("DROP", "INDEX"), _drop_index),
    (("SHOW", "INDEX"), _show_indices),
    (("SHOW", "INDEXES"), _show_indices),
    (("SHOW", "INDICES"), _show_indices),
    (("DESCRIBE", "HISTORY"), _history),
    (("DESC", "HISTORY"), _history),
    (("DESCRIBE", "DETAIL"), _detail),
    (("DESC", "DETAIL"), _detail),
    (("DESCRIBE", "TABLE"), _columns),
    (("DESC", "TABLE"), _columns),
    (("DESCRIBE",), _columns),
    (("DESC",), _columns),
)
"""Which words begin a statement, and what executes it."""
