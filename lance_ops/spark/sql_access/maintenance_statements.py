"""OPTIMIZE, VACUUM, VERIFY, ANALYZE and RESTORE.

Where Delta has the statement, too, the result has the columns of Delta's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.spark.sql_access.shown_tables import shown_columns
from lance_ops.spark.sql_access.statement import Statement, read_switch
from lance_ops.spark.sql_access.table_references import read_version_clause

__all__ = ["MAINTENANCE_STATEMENTS"]

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
    "materialize_deletions": read_switch,
    "defer_index_remap": read_switch,
    "num_threads": int,
    "batch_size": int,
    "max_rows_per_group": int,
}
"""The last three change nothing here: they let statements run that were written for the reference."""
_BEFORE = "before_timestamp_millis"
_REFUSES_TAGGED = "error_if_tagged_old_versions"
_VACUUM_OPTIONS: dict[str, Callable[[str], Any]] = {
    "retain_versions": int,
    "delete_rate_limit": int,
    "delete_unverified": read_switch,
    _BEFORE: int,
    _REFUSES_TAGGED: read_switch,
}
_INSTEAD = {"before_version": "retain_versions = n, how many versions to keep"}
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


def _optimize(statement: Statement) -> DataFrame | None:
    """OPTIMIZE [TABLE] t [ZORDER BY | SORT BY (columns)] [WITH (option = value, …)]; see `_OPTIMIZE_OPTIONS`."""
    reader = statement.reader
    reader.accept("TABLE")
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
    """VACUUM [TABLE] t [RETAIN n HOURS] [WITH (option = value, …)] [DRY RUN], in any order; see `_VACUUM_OPTIONS`.

    Without RETAIN, `retain_versions` and `before_timestamp_millis`, versions younger than two weeks are kept. Versions
    with a tag stay, or with `error_if_tagged_old_versions` refuse the statement. DRY RUN lists every file.
    """
    reader = statement.reader
    reader.accept("TABLE")
    table = statement.table()
    if table is None:
        return None
    age: timedelta | None = None
    is_dry = False
    options: dict[str, Any] = {_REFUSES_TAGGED: False}
    while not reader.ended:
        if age is None and reader.accept("RETAIN"):
            age = _hours(reader.number("a number of hours"))
            if not reader.accept_any("HOURS", "HOUR"):
                raise reader.error("HOURS")
        elif reader.peek("WITH"):
            options |= statement.options("VACUUM", _VACUUM_OPTIONS, _INSTEAD)
        elif not is_dry and reader.accept("DRY", "RUN"):
            is_dry = True
        else:
            reader.end()
    moment = options.pop(_BEFORE, None)
    if moment is not None:
        if age is not None:
            raise InvalidInput(f"VACUUM: RETAIN and {_BEFORE} both say how old a version must be: give one")
        age = max(timedelta(0), _age(moment))
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


def _hours(number: int) -> timedelta:
    try:
        return timedelta(hours=number)
    except OverflowError:  # older than time: no version is
        return timedelta.max


def _age(millis: int) -> timedelta:
    """Return how long ago a moment was, in milliseconds since 1970."""
    try:
        return datetime.now(UTC) - datetime.fromtimestamp(millis / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidInput(f"VACUUM: {_BEFORE} = {millis} is no moment of a version") from None


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
    types = {field.name: field.dataType.simpleString() for field in shown_columns(opened)}
    rows = [
        (name, types[name], each.num_rows, each.num_nulls, _text(each.min), _text(each.max), each.num_distinct)
        for name, each in measured.items()
    ]
    return statement.result(_STATISTICS, rows)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _restore(statement: Statement) -> DataFrame | None:
    """RESTORE [TABLE] t [TO] VERSION AS OF n | TIMESTAMP AS OF moment."""
    reader = statement.reader
    reader.accept("TABLE")
    table = statement.table()
    if table is None:
        return None
    reader.accept("TO")
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


MAINTENANCE_STATEMENTS = (
    (("OPTIMIZE",), _optimize),
    (("VACUUM",), _vacuum),
    (("VERIFY",), _verify),
    (("ANALYZE", "TABLE"), _analyze),
    (("RESTORE",), _restore),
)
"""Which words begin a statement, and what executes it."""
