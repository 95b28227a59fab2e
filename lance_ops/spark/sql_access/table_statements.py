"""CREATE TABLE, ALTER TABLE, and the names of versions: tags and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from lance_ops.api import LanceDataset
from lance_ops.api.namespaces import TableDescription
from lance_ops.core.errors import (
    DatasetAlreadyExists,
    DatasetNotFound,
    InvalidInput,
    ReferenceNotFound,
    UnsupportedFeature,
)
from lance_ops.reading import ROW_ADDRESS, ROW_ID
from lance_ops.spark.data_source import WriteMode
from lance_ops.spark.frame_write import create_table, write_with
from lance_ops.spark.sql_access.queries import lance_query, run_query
from lance_ops.spark.sql_access.statement import Statement
from lance_ops.spark.sql_access.table_references import FORMAT, read_version_clause, version_or_name
from lance_ops.spark.sql_access.words import Kind
from lance_ops.spark.translation import schema_from_spark

__all__ = ["TABLE_STATEMENTS"]

_IN = ("IN", "ON", "FROM")


def _create_table(statement: Statement) -> DataFrame | None:
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t [(columns)] [USING lance] [TBLPROPERTIES (…)] [AS query].

    A name of the namespace needs USING lance. Properties are the options of a write.
    """
    reader = statement.reader
    replace = reader.accept("OR", "REPLACE")
    if not reader.accept("TABLE"):
        return None
    keep = reader.accept("IF", "NOT", "EXISTS")
    parts = reader.path("a table")
    if reader.accept("LIKE") and statement.table() is not None:
        raise UnsupportedFeature("CREATE TABLE … LIKE a Lance table (write USING lance AS SELECT * FROM t LIMIT 0)")
    columns = _in_brackets(statement) if reader.peek("(") else None
    using = reader.name("a format").lower() if reader.accept("USING") else None
    table = None if using not in (None, FORMAT) else statement.tables.place(parts, named=using == FORMAT)
    if table is None:
        return lance_query(reader.text, statement.tables)
    options: dict[str, str] = {}
    while reader.accept_any("TBLPROPERTIES", "OPTIONS"):
        options |= statement.properties()
    query = reader.rest("a query") if reader.accept("AS") else None
    reader.end()
    if (columns is None) == (query is None):
        raise InvalidInput("SQL on a Lance table: CREATE TABLE needs columns with their types, or AS and a query")
    if keep and not replace and _is_there(statement, table):
        return statement.nothing()
    mode: WriteMode = "overwrite" if replace else "create"
    try:
        if query is None:
            declared = _declared(columns or "")
            create_table(statement.tables.session, declared, table.location, mode, options, table.storage_options)
        else:
            write_with(run_query(query, statement.tables), table.location, mode, options, table.storage_options)
    except DatasetAlreadyExists:
        if not keep:
            raise DatasetAlreadyExists(
                f"{table.location}: CREATE OR REPLACE TABLE writes a new version with other columns"
            ) from None
    return statement.nothing()


def _is_there(statement: Statement, table: TableDescription) -> bool:
    try:
        statement.tables.open(table)
    except DatasetNotFound:
        return False
    return True


def _in_brackets(statement: Statement) -> str:
    reader = statement.reader
    reader.expect("(")
    text = reader.until(what="columns")
    reader.expect(")")
    return text


def _alter_table(statement: Statement) -> DataFrame | None:
    """ALTER TABLE t ADD | UPDATE | DROP | RENAME | ALTER COLUMN …, or CREATE | DROP TAG | BRANCH …."""
    reader = statement.reader
    table = statement.table()
    if table is None:
        return None
    opened = statement.tables.open(table)
    for keywords, act in _ALTERATIONS:
        if reader.accept(*keywords):
            act(statement, opened)
            reader.end()
            return statement.nothing()
    known = ", ".join(dict.fromkeys(" ".join(keywords) for keywords, _ in _ALTERATIONS))
    raise reader.error(f"one of {known}")


def _add_columns(statement: Statement, opened: LanceDataset) -> None:
    """Add columns of nulls, one computed column (`c AS (expression)`), or values by row (`a, b FROM source`)."""
    reader = statement.reader
    rows = _values_by_row(statement)
    if rows is not None:
        opened.add_columns(rows, runner=statement.runner)
        return
    if reader.peek("("):
        _add_nulls(statement, opened, _in_brackets(statement))
        return
    begin = reader.at
    name = reader.name("a column with its type, or AS and an expression")
    if reader.accept("AS"):
        statement.check_new_name(opened, name)
        written = statement.writer(opened).write(_in_brackets(statement))
        opened.add_columns({name: written}, runner=statement.runner)
    else:
        reader.at = begin
        _add_nulls(statement, opened, reader.rest("a column with its type"))


def _add_nulls(statement: Statement, opened: LanceDataset, columns: str) -> None:
    declared = _declared(columns)
    for field in declared.fields:
        statement.check_new_name(opened, field.name)
        if not field.nullable:
            raise InvalidInput(
                f"ADD COLUMN {field.name} NOT NULL: the table's rows have no values of it; add it without NOT NULL, "
                f"give it values by UPDATE, and then ALTER COLUMN {field.name} SET NOT NULL"
            )
    opened.add_columns(_arrow_schema(declared))


def _update_columns(statement: Statement, opened: LanceDataset) -> None:
    """Replace values of columns in the rows that a source names: `a, b FROM source`."""
    rows = _values_by_row(statement)
    if rows is None:
        raise statement.reader.error("columns, FROM and a source with _rowaddr or _rowid")
    opened.update_columns(rows, runner=statement.runner)


def _values_by_row(statement: Statement) -> DataFrame | pa.Table | None:
    """Read `a, b FROM name | (query)`; return these columns with those that name rows. None if it is something else."""
    reader = statement.reader
    names: list[str] = []
    begin = reader.at
    while not reader.ended and (not names or reader.accept(",")):
        word = reader.next
        if word is None or not word.is_name:
            break
        names.append(reader.name("a column"))
    if not names or not reader.accept("FROM"):
        reader.at = begin
        return None
    frame = run_query(f"SELECT * FROM {reader.rest('a table or a query')}", statement.tables)
    keys = [name for name in (ROW_ADDRESS, ROW_ID) if name in frame.columns]
    chosen = frame.select(*keys, *(f"`{name.replace('`', '``')}`" for name in names))
    return statement.rows_for(chosen)


def _drop_columns(statement: Statement, opened: LanceDataset) -> None:
    if_exists = statement.reader.accept("IF", "EXISTS")
    paths = statement.column_paths(opened, if_exists=if_exists)
    statement.reader.end()
    if paths:
        opened.drop_columns(paths)


def _rename_column(statement: Statement, opened: LanceDataset) -> None:
    path = statement.column_path(opened)
    statement.reader.expect("TO")
    name = statement.reader.name("the new name")
    if path in opened.snapshot.schema.names:
        statement.check_new_name(opened, name, besides=path)
    opened.alter_columns({"path": path, "name": name})


def _alter_column(statement: Statement, opened: LanceDataset) -> None:
    reader = statement.reader
    path = statement.column_path(opened)
    if reader.accept("TYPE"):
        data_type = _arrow_schema(_declared(f"x {reader.rest('a type')}")).field(0).type
        opened.alter_columns({"path": path, "data_type": data_type}, runner=statement.runner)
    elif reader.accept("DROP", "NOT", "NULL"):
        opened.alter_columns({"path": path, "nullable": True}, runner=statement.runner)
    else:
        reader.expect("SET", "NOT", "NULL")
        opened.alter_columns({"path": path, "nullable": False}, runner=statement.runner)


def _declared(columns: str) -> StructType:
    """Return the columns that Spark's words declare; raise `UnsupportedFeature` for a NOT NULL within one."""
    declared = StructType.fromDDL(columns)
    assert isinstance(declared, StructType)
    for column in declared.fields:
        path = next(_required_within(column.dataType), None)
        if path is not None:
            raise UnsupportedFeature(
                f"NOT NULL of a struct's field, {column.name}.{path} (leave it out, or declare the column NOT NULL)"
            )
    return declared


def _required_within(kind: DataType) -> Iterator[str]:
    """Yield the paths of struct fields, at any depth of a type, that are declared NOT NULL."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            if not field.nullable:
                yield field.name
            yield from (f"{field.name}.{path}" for path in _required_within(field.dataType))
    elif isinstance(kind, ArrayType):
        yield from (f"element.{path}" for path in _required_within(kind.elementType))
    elif isinstance(kind, MapType):
        yield from (f"value.{path}" for path in _required_within(kind.valueType))


def _arrow_schema(declared: StructType) -> pa.Schema:
    """Return columns in the types of a table; all are nullable."""
    return schema_from_spark(to_arrow_schema(declared, timezone="UTC"), {})


def _name(statement: Statement, what: str) -> str:
    word = statement.reader.next
    return statement.reader.literal(what) if word and word.kind is Kind.TEXT else statement.reader.name(what)


def _create_reference(kind: str, *, replace: bool = False) -> Callable[[Statement], DataFrame]:
    """CREATE TAG | BRANCH [IF NOT EXISTS] name ON t [VERSION AS OF n | AS OF VERSION n]."""

    def create(statement: Statement) -> DataFrame:
        keep = statement.reader.accept("IF", "NOT", "EXISTS")
        name = _name(statement, f"the {kind}'s name")
        statement.reader.expect("ON")
        opened = statement.tables.open(statement.lance_table())
        _make_reference(statement, opened, kind, name, replace=replace, keep=keep)
        statement.reader.end()
        return statement.nothing()

    return create


def _make_reference(
    statement: Statement, opened: LanceDataset, kind: str, name: str, *, replace: bool, keep: bool
) -> None:
    reader = statement.reader
    clause = version_or_name(reader) if reader.accept("AS", "OF", "VERSION") else read_version_clause(reader)
    reader.end()
    if clause is not None:
        opened = statement.tables.open(TableDescription(opened.uri, opened.snapshot.storage_options), clause)
    there = name in (opened.tags.list() if kind == "tag" else opened.branches.list())
    if there and keep:
        return
    if kind == "branch":
        opened.create_branch(name)
    elif there and replace:
        opened.tags.update(name)
    else:
        opened.tags.create(name)


def _alter_reference(kind: str, *, replace: bool = False) -> Callable[[Statement, LanceDataset], None]:
    """ALTER TABLE t CREATE TAG | BRANCH [IF NOT EXISTS] name [AS OF VERSION n]."""

    def create(statement: Statement, opened: LanceDataset) -> None:
        keep = statement.reader.accept("IF", "NOT", "EXISTS")
        name = _name(statement, f"the {kind}'s name")
        _make_reference(statement, opened, kind, name, replace=replace, keep=keep)

    return create


def _drop_reference(kind: str) -> Callable[[Statement], DataFrame]:
    """DROP TAG | BRANCH [IF EXISTS] name ON t."""

    def drop(statement: Statement) -> DataFrame:
        quiet = statement.reader.accept("IF", "EXISTS")
        name = _name(statement, f"the {kind}'s name")
        statement.reader.expect("ON")
        opened = statement.tables.open(statement.lance_table())
        statement.reader.end()
        _remove_reference(opened, kind, name, quiet=quiet)
        return statement.nothing()

    return drop


def _alter_drop_reference(kind: str) -> Callable[[Statement, LanceDataset], None]:
    """ALTER TABLE t DROP TAG | BRANCH [IF EXISTS] name."""

    def drop(statement: Statement, opened: LanceDataset) -> None:
        quiet = statement.reader.accept("IF", "EXISTS")
        _remove_reference(opened, kind, _name(statement, f"the {kind}'s name"), quiet=quiet)

    return drop


def _remove_reference(opened: LanceDataset, kind: str, name: str, *, quiet: bool) -> None:
    try:
        if kind == "tag":
            opened.tags.delete(name)
        else:
            opened.branches.delete(name)
    except ReferenceNotFound:
        if not quiet:
            raise


def _show_tags(statement: Statement) -> DataFrame:
    """SHOW TAGS IN t."""
    opened = statement.opened_after(*_IN)
    rows = [(name, tag["version"], tag["branch"]) for name, tag in sorted(opened.tags.list().items())]
    return statement.result("name string, version bigint, branch string", rows)


def _show_branches(statement: Statement) -> DataFrame:
    """SHOW BRANCHES IN t."""
    opened = statement.opened_after(*_IN)
    rows: list[tuple[Any, ...]] = [
        (name, branch["parent_branch"], branch["parent_version"])
        for name, branch in sorted(opened.branches.list().items())
    ]
    return statement.result("name string, parent_branch string, parent_version bigint", rows)


_ALTERATIONS: tuple[tuple[tuple[str, ...], Callable[[Statement, LanceDataset], None]], ...] = (
    (("ADD", "COLUMNS"), _add_columns),
    (("ADD", "COLUMN"), _add_columns),
    (("UPDATE", "COLUMNS"), _update_columns),
    (("UPDATE", "COLUMN"), _update_columns),
    (("DROP", "COLUMNS"), _drop_columns),
    (("DROP", "COLUMN"), _drop_columns),
    (("RENAME", "COLUMN"), _rename_column),
    (("ALTER", "COLUMN"), _alter_column),
    (("CREATE", "TAG"), _alter_reference("tag")),
    (("CREATE", "OR", "REPLACE", "TAG"), _alter_reference("tag", replace=True)),
    (("CREATE", "BRANCH"), _alter_reference("branch")),
    (("DROP", "TAG"), _alter_drop_reference("tag")),
    (("DROP", "BRANCH"), _alter_drop_reference("branch")),
)

TABLE_STATEMENTS = (
    (("CREATE", "TAG"), _create_reference("tag")),
    (("CREATE", "OR", "REPLACE", "TAG"), _create_reference("tag", replace=True)),
    (("CREATE", "BRANCH"), _create_reference("branch")),
    (("DROP", "TAG"), _drop_reference("tag")),
    (("DROP", "BRANCH"), _drop_reference("branch")),
    (("SHOW", "TAGS"), _show_tags),
    (("SHOW", "BRANCHES"), _show_branches),
    (("CREATE",), _create_table),
    (("ALTER", "TABLE"), _alter_table),
)
"""Which words begin a statement, and what executes it."""
