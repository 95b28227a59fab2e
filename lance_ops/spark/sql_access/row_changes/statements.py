"""INSERT, DELETE, UPDATE and TRUNCATE: Spark's tasks write the rows of a query, the library's verbs do the rest."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput, SchemaMismatch, UnsupportedFeature
from lance_ops.spark.data_source import WriteMode
from lance_ops.spark.frame_write import write_with
from lance_ops.spark.sql_access.merge import Clause, change_by_keys, key_condition
from lance_ops.spark.sql_access.queries import lance_query, run_query
from lance_ops.spark.sql_access.statement import Statement, assigned_column, check_no_default, check_values
from lance_ops.spark.sql_access.words import QUERY_WORDS
from lance_ops.spark.translation import check_keys_are_kept

__all__ = ["ROW_STATEMENTS"]

_GROWS_BY = "ALTER TABLE … ADD COLUMNS or ALTER COLUMN … TYPE"
"""How a statement lets the table's schema grow."""

_AFFECTED = "num_affected_rows bigint"


def _insert(statement: Statement) -> DataFrame | None:
    """INSERT (INTO | OVERWRITE) [TABLE] t [(columns) | BY NAME] [REPLACE WHERE condition] query."""
    reader = statement.reader
    overwrite = reader.accept("OVERWRITE")
    if not overwrite and not reader.accept("INTO"):
        return None
    reader.accept("TABLE")
    table = statement.table()
    if table is None:
        return lance_query(reader.text, statement.tables)
    columns = _columns(statement)
    by_name = reader.accept("BY", "NAME")
    condition = None
    if reader.accept("REPLACE", "WHERE"):
        condition = reader.until(*QUERY_WORDS, what="a condition")
        if overwrite:
            raise InvalidInput("SQL on a Lance table: INSERT INTO … REPLACE WHERE, or INSERT OVERWRITE; not both")
    if reader.peek("PARTITION"):
        raise UnsupportedFeature("PARTITION of a Lance table (it has no partition folders: use REPLACE WHERE)")
    check_values(reader)
    frame = run_query(reader.rest("a query"), statement.tables)
    opened = statement.tables.open(table)
    names = opened.snapshot.schema.names
    if not by_name:
        frame = _by_position(frame, columns or names, statement)
    elif columns is not None:
        raise InvalidInput("SQL on a Lance table: columns by position or BY NAME; not both")
    replaced = "true" if overwrite else None if condition is None else statement.writer(opened).write(condition)
    mode: WriteMode = "append" if replaced is None else "overwrite"
    options = {} if replaced is None else {"replace_where": replaced}
    write_with(frame, table.location, mode, options, table.storage_options, grows_by=_GROWS_BY)
    return statement.nothing()


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
    """DELETE FROM t [WHERE condition]; a condition `column IN (query) [AND …]` is joined by key."""
    reader = statement.reader
    reader.expect("FROM")
    table = statement.table()
    if table is None:
        return None
    names = (reader.words[reader.at - 1].value, statement.alias("WHERE"))
    condition = reader.rest("a condition") if reader.accept("WHERE") else "true"
    reader.end()
    opened = statement.tables.open(table)
    keys = _keys_of_query(statement, opened, condition, *names)
    if keys is None:
        written = statement.writer(opened, *names).write(condition)
        return statement.result(_AFFECTED, [(opened.delete(written, runner=statement.runner)["num_deleted_rows"],)])
    name, found, rest = keys
    check_keys_are_kept("DELETE … IN (SELECT …)", found.schema, opened.snapshot.schema)
    if rest is None:
        deleted = opened.delete_by_keys(statement.rows_for(found, opened), name, runner=statement.runner)
    else:
        deleted = change_by_keys(statement, opened, _target(*names), name, found, Clause(rest, "DELETE"))
    return statement.result(_AFFECTED, [(deleted["num_deleted_rows"],)])


def _keys_of_query(
    statement: Statement, opened: LanceDataset, condition: str, *names: str | None
) -> tuple[str, DataFrame, str | None] | None:
    """Return the column and the values of a condition `column IN (query)`, and the other conditions beside it.

    Returns None for a condition of another shape. The values are a column of the same name. `names` are those of the
    table in the statement.
    """
    found = key_condition(condition)
    if found is None:
        return None
    column = statement.column(opened, found.column, *names)
    return column, _by_position(run_query(found.query, statement.tables), [column], statement), found.rest


def _target(name: str, alias: str | None) -> str:
    """Return what expressions of a statement call its table."""
    return alias or name


def _update(statement: Statement) -> DataFrame | None:
    """UPDATE t SET column = expression, … [WHERE condition]; `column IN (query) [AND …]` is merged by key."""
    reader = statement.reader
    table = statement.table()
    if table is None:
        return None
    names = (reader.words[reader.at - 1].value, statement.alias("SET"))
    reader.expect("SET")
    opened = statement.tables.open(table)
    values: dict[str, str] = {}
    while True:
        given = assigned_column(reader, *names)
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
    keys = None if condition is None else _keys_of_query(statement, opened, condition, *names)
    if keys is not None:
        name, found, rest = keys
        changed = change_by_keys(statement, opened, _target(*names), name, found, Clause(rest, "UPDATE", values))
        return statement.result(_AFFECTED, [(changed["num_updated_rows"],)])
    writer = statement.writer(opened, *names)
    updates = {name: writer.write_value(text, name) for name, text in values.items()}
    where = None if condition is None else writer.write(condition)
    done = opened.update(updates, where, runner=statement.runner)
    return statement.result(_AFFECTED, [(done["num_rows_updated"],)])


def _truncate(statement: Statement) -> DataFrame | None:
    """TRUNCATE TABLE t."""
    table = statement.table()
    if table is None:
        return None
    statement.reader.end()
    statement.tables.open(table).truncate_table()
    return statement.nothing()


ROW_STATEMENTS = (
    (("INSERT",), _insert),
    (("DELETE",), _delete),
    (("UPDATE",), _update),
    (("TRUNCATE", "TABLE"), _truncate),
)
"""Which words begin a statement, and what executes it."""
