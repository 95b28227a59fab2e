"""CREATE TABLE from columns, a query or another table, and DROP TABLE."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from lance_ops.api.namespaces import TableDescription
from lance_ops.core.errors import DatasetAlreadyExists, DatasetNotFound, InvalidInput, UnsupportedFeature
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source import WriteMode, options_of_properties
from lance_ops.spark.frame_write import create_table, write_with
from lance_ops.spark.sql_access.queries import lance_query, run_query_to_write
from lance_ops.spark.sql_access.shown_tables import COMMENT
from lance_ops.spark.sql_access.statement import Statement
from lance_ops.spark.sql_access.table_definition.declared_columns import declared_columns
from lance_ops.spark.sql_access.table_references import FORMAT, read_version_clause

__all__ = ["CREATION_STATEMENTS"]

_CLONES = ("DEEP", "SHALLOW", "CLONE")
_CLUSTER = "OPTIMIZE t SORT BY (…) orders the rows, and CREATE INDEX finds them; a table has no folders of partitions"
_REFUSED_CLAUSES = (
    (("PARTITIONED", "BY"), _CLUSTER),
    (("CLUSTERED", "BY"), _CLUSTER),
    (("CLUSTER", "BY"), _CLUSTER),
    (("LOCATION",), "the name is the place: CREATE TABLE lance.`{path}`"),
)
"""Clauses of CREATE TABLE that a Lance table does not have, and what to do instead."""


def _create_table(statement: Statement) -> DataFrame | None:
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t [(columns)] [USING lance] [clauses] [AS query], or a clone.

    A name of the namespace needs USING lance. The clauses are COMMENT, TBLPROPERTIES and OPTIONS. OPTIONS are those of
    a write; TBLPROPERTIES are, too, or else keys of the table's configuration.
    """
    reader = statement.reader
    replace = reader.accept("OR", "REPLACE")
    if not reader.accept("TABLE"):
        return None
    keep = reader.accept("IF", "NOT", "EXISTS")
    if keep and replace:
        raise InvalidInput(
            "SQL: CREATE OR REPLACE TABLE replaces a table, and IF NOT EXISTS keeps it: write one of them"
        )
    parts = reader.path("a table")
    if reader.accept("LIKE") and statement.table() is not None:
        raise UnsupportedFeature("CREATE TABLE … LIKE a Lance table (write USING lance AS SELECT * FROM t LIMIT 0)")
    if any(reader.peek(word) for word in _CLONES):
        return _clone(statement, parts, keep=keep, replace=replace)
    columns = reader.in_brackets("columns") if reader.peek("(") else None
    using = reader.name("a format").lower() if reader.accept("USING") else None
    table = None if using not in (None, FORMAT) else statement.tables.place(parts, named=using == FORMAT)
    if table is None:
        return lance_query(reader.text, statement.tables.for_query_to_write())
    options = _options(statement, table)
    query = reader.rest("a query") if reader.accept("AS") else None
    reader.end()
    if (columns is None) == (query is None):
        raise InvalidInput("SQL on a Lance table: CREATE TABLE needs columns with their types, or AS and a query")
    if keep and _is_there(statement, table):
        return statement.nothing()
    mode: WriteMode = "overwrite" if replace else "create"
    try:
        if query is None:
            declared = declared_columns(columns or "")
            create_table(statement.tables.session, declared, table.location, mode, options, table.storage_options)
        else:
            _create_from_query(statement, table, query, mode, options)
    except DatasetAlreadyExists:
        if not keep:
            raise DatasetAlreadyExists(
                f"{table.location}: CREATE OR REPLACE TABLE writes a new version with other columns"
            ) from None
    return statement.nothing()


def _create_from_query(
    statement: Statement, table: TableDescription, query: str, mode: WriteMode, options: Mapping[str, str]
) -> None:
    """Make a table of a query's rows, or replace one. A query that reads the replaced table reads one version of it.

    If another writer has changed this version before the commit, the query runs again on the newest one.
    """

    def attempt(current: Snapshot | None) -> None:
        rows, read = run_query_to_write(query, statement.tables, current)
        write_with(
            rows,
            table.location,
            mode,
            options,
            table.storage_options,
            computed_from=read,
            on_progress=statement.on_progress,
        )

    if mode == "overwrite" and _is_there(statement, table):
        statement.retried(statement.tables.open(table), attempt)
    else:
        attempt(None)


def _options(statement: Statement, table: TableDescription) -> dict[str, str]:
    """Read the clauses behind the columns; return them as options of the write that makes the table."""
    reader = statement.reader
    options: dict[str, str] = {}
    while clause := reader.accept_any("TBLPROPERTIES", "OPTIONS", "COMMENT"):
        if clause == "COMMENT":
            options[f"config.{COMMENT}"] = reader.literal("a comment in quotes")
        elif clause == "OPTIONS":
            options |= statement.properties()
        else:
            options |= options_of_properties(statement.properties())
    for keywords, instead in _REFUSED_CLAUSES:
        if reader.accept(*keywords):
            shown = " ".join(keywords)
            path = reader.next.value if reader.next is not None else ""
            raise UnsupportedFeature(f"{shown} of a Lance table ({instead.format(path=path)})", table.location)
    return options


def _clone(statement: Statement, parts: tuple[str, ...], *, keep: bool, replace: bool) -> DataFrame | None:
    """CREATE TABLE [IF NOT EXISTS] t [DEEP | SHALLOW] CLONE s [VERSION AS OF n]; a deep clone copies files by tasks."""
    reader = statement.reader
    is_deep = reader.accept_any("DEEP", "SHALLOW") != "SHALLOW"
    reader.expect("CLONE")
    source = statement.table()
    target = None if source is None else statement.tables.place(parts, named=True)
    if source is None or target is None:
        return lance_query(reader.text, statement.tables)
    clause = read_version_clause(reader)
    reader.end()
    if replace:
        raise UnsupportedFeature("CREATE OR REPLACE TABLE … CLONE (write CREATE OR REPLACE TABLE … AS SELECT * FROM …)")
    if keep and _is_there(statement, target):
        return statement.nothing()
    opened, options = statement.tables.open(source, clause), target.storage_options
    if is_deep:
        made = opened.deep_clone(target.location, opened.version, options, runner=statement.runner)
    else:
        made = opened.shallow_clone(target.location, opened.version, options)
    return statement.result("path string, source_version bigint", [(made.uri, opened.version)])


def _drop_table(statement: Statement) -> DataFrame | None:
    """Refuse DROP TABLE [IF EXISTS] t [PURGE] of a Lance table that is there; with IF EXISTS ignore one that is not."""
    reader = statement.reader
    quiet = reader.accept("IF", "EXISTS")
    table = statement.table()
    if table is None:
        return None
    reader.accept("PURGE")
    reader.end()
    if quiet and not _is_there(statement, table):
        return statement.nothing()
    location = statement.tables.open(table).uri
    raise UnsupportedFeature(
        f"DROP of a Lance table (lance_ops.LanceDataset.drop({location!r}) removes it with all versions)"
    )


def _is_there(statement: Statement, table: TableDescription) -> bool:
    try:
        statement.tables.open(table)
    except DatasetNotFound:
        return False
    return True


CREATION_STATEMENTS: tuple[tuple[tuple[str, ...], Callable[[Statement], DataFrame | None]], ...] = (
    (("CREATE",), _create_table),
    (("DROP", "TABLE"), _drop_table),
)
"""Which words begin a statement, and what executes it."""
