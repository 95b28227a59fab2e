"""The statements that change rows, but for MERGE: INSERT, DELETE, UPDATE and TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput, SchemaMismatch, UnsupportedFeature
from lance_ops.snapshot import Snapshot
from lance_ops.spark.frame_write import write_with
from lance_ops.spark.sql_access.queries import lance_query, run_query_to_write
from lance_ops.spark.sql_access.row_changes.computed_rows import delete_computed, update_computed
from lance_ops.spark.sql_access.row_changes.key_conditions import keys_of_query
from lance_ops.spark.sql_access.statement import (
    Statement,
    assigned_column,
    check_no_default,
    check_values,
)
from lance_ops.spark.sql_access.words import QUERY_WORDS

__all__ = ["ROW_STATEMENTS"]

_GROWS_BY = "ALTER TABLE … ADD COLUMNS or ALTER COLUMN … TYPE"
"""How a statement lets the table's schema grow."""

_AFFECTED = "num_affected_rows bigint"


def _insert(statement: Statement) -> DataFrame | None:
    """INSERT (INTO | OVERWRITE) [TABLE] t [(columns) | BY NAME] [REPLACE WHERE condition] query.

    A query that reads the table reads the version whose rows the statement replaces.
    """
    reader = statement.reader
    overwrite = reader.accept("OVERWRITE")
    if not overwrite and not reader.accept("INTO"):
        return None
    reader.accept("TABLE")
    table = statement.table()
    if table is None:
        return lance_query(reader.text, statement.tables.for_query_to_write())
    columns = _columns(statement)
    by_name = reader.accept("BY", "NAME")
    condition = None
    if reader.accept("REPLACE", "WHERE"):
        condition = reader.until(*QUERY_WORDS, what="a condition")
        if overwrite:
            raise InvalidInput("SQL on a Lance table: INSERT INTO … REPLACE WHERE, or INSERT OVERWRITE; not both")
    if reader.peek("PARTITION"):
        raise UnsupportedFeature("PARTITION of a Lance table (it has no partition folders: use REPLACE WHERE)")
    if by_name and columns is not None:
        raise InvalidInput("SQL on a Lance table: columns by position or BY NAME; not both")
    check_values(reader)
    query = reader.rest("a query")
    opened = statement.tables.open(table)
    replaces = overwrite or condition is not None

    def attempt(current: Snapshot) -> None:
        options = {}
        if replaces:
            options["replace_where"] = "true" if condition is None else _condition_in_sql(statement, current, condition)
        frame, read = run_query_to_write(query, statement.tables, current)
        if not by_name:
            frame = _by_position(frame, columns or current.schema.names, statement)
        write_with(
            frame,
            table.location,
            "overwrite" if replaces else "append",
            options,
            table.storage_options,
            grows_by=_GROWS_BY,
            computed_from=read if replaces else None,
            on_progress=statement.on_progress,
        )

    if replaces:
        statement.retried(opened, attempt)
    else:
        attempt(opened.snapshot)
    return statement.nothing()


def _condition_in_sql(statement: Statement, current: Snapshot, condition: str) -> str:
    """Return the condition of REPLACE WHERE in this library's SQL, which the new rows must meet, too."""
    predicate = statement.predicate(current.schema, condition)
    if predicate is None:
        raise UnsupportedFeature(
            f"REPLACE WHERE {condition} (compare columns with constants, as in day = DATE '2026-01-31' AND "
            "region IN ('north', 'south'); or DELETE rows by any condition, and INSERT the others)"
        )
    return predicate.to_sql()


def _columns(statement: Statement) -> list[str] | None:
    """Read the list of columns in brackets, which is no query."""
    reader = statement.reader
    if not reader.peek("(") or any(reader.peek("(", word) for word in (*QUERY_WORDS, "(")):
        return None
    reader.expect("(")
    names = [reader.name("a column")]
    while reader.accept(","):
        names.append(reader.name("a column"))
    reader.expect(")")
    return names


def _by_position(frame: DataFrame, names: list[str], statement: Statement) -> DataFrame:
    """Name a query's columns after the table's; raise `SchemaMismatch` if there are more or fewer."""
    if len(frame.columns) != len(names):
        raise SchemaMismatch(
            f"the query has {len(frame.columns)} columns for {len(names)} of the table ({', '.join(names)}): name the "
            "columns, as in INSERT INTO t (a, b), or say BY NAME"
        )
    if len({name.lower() for name in names}) < len(names) and not statement.tables.case_rule.value:
        raise InvalidInput(
            f"SQL on a Lance table: of the columns {', '.join(names)} two have one name, or names that differ only in "
            "case: name each once, or set spark.sql.caseSensitive"
        )
    return frame.toDF(*names)


def _delete(statement: Statement) -> DataFrame | None:
    """DELETE FROM t [WHERE condition].

    The library finds the rows if the condition means the same to Spark and to the library. It joins `column IN (query)`
    by key. Spark finds the rows of every other condition.
    """
    reader = statement.reader
    reader.expect("FROM")
    table = statement.named_table("WHERE")
    if table is None:
        return lance_query(reader.text, statement.tables)
    condition = reader.rest("a condition") if reader.accept("WHERE") else None
    reader.end()
    opened = statement.tables.open(table.description)

    def attempt(current: Snapshot) -> int:
        target, runner = LanceDataset.of(current), statement.runner
        if condition is None:
            return target.delete("true", conflict_retries=0, runner=runner)["num_deleted_rows"]
        predicate = statement.predicate(current.schema, condition, table.qualifier)
        if predicate is not None:
            return target.delete(predicate.to_sql(), conflict_retries=0, runner=runner)["num_deleted_rows"]
        keys = keys_of_query(statement, target, condition, table)
        if keys is not None:
            name, source = keys
            return target.delete_by_keys(source, name, conflict_retries=0, runner=runner)["num_deleted_rows"]
        return delete_computed(statement, current, table, condition)

    return statement.result(_AFFECTED, [(statement.retried(opened, attempt),)])


def _update(statement: Statement) -> DataFrame | None:
    """UPDATE t SET column = expression, … [WHERE condition]."""
    reader = statement.reader
    table = statement.named_table("SET")
    if table is None:
        return lance_query(reader.text, statement.tables)
    reader.expect("SET")
    opened = statement.tables.open(table.description)
    values: dict[str, str] = {}
    while True:
        given = assigned_column(reader, table.name, table.alias)
        reader.expect("=")
        name = statement.column(opened, (given,))
        if name in values:
            raise InvalidInput(f"SQL on a Lance table: column {name!r} is set twice")
        values[name] = reader.until(",", "WHERE", what="an expression")
        check_no_default(values[name])
        if not reader.accept(","):
            break
    condition = reader.rest("a condition") if reader.accept("WHERE") else None
    reader.end()
    num_updated = statement.retried(
        opened, lambda current: update_computed(statement, current, table, condition, values)
    )
    return statement.result(_AFFECTED, [(num_updated,)])


def _truncate(statement: Statement) -> DataFrame | None:
    """TRUNCATE TABLE t."""
    table = statement.table()
    if table is None:
        return None
    statement.reader.end()
    statement.tables.open(table).truncate_table()
    return statement.nothing()


ROW_STATEMENTS: tuple[tuple[tuple[str, ...], Callable[[Statement], DataFrame | None]], ...] = (
    (("INSERT",), _insert),
    (("DELETE",), _delete),
    (("UPDATE",), _update),
    (("TRUNCATE", "TABLE"), _truncate),
)
"""Which words begin a statement, and what executes it."""
