"""CREATE TABLE from columns, a query or another table; ALTER TABLE; and SHOW TABLES."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.types import ArrayType, CharType, DataType, MapType, StringType, StructType, VarcharType
from sqlglot import exp

from lance_ops.api import LanceDataset
from lance_ops.api.namespaces import TableDescription
from lance_ops.core.errors import (
    DatasetAlreadyExists,
    DatasetNotFound,
    InvalidInput,
    UnsupportedFeature,
)
from lance_ops.core.records import dataclass
from lance_ops.reading import ROW_ADDRESS, ROW_ID
from lance_ops.spark.data_source import WriteMode
from lance_ops.spark.frame_write import create_table, write_with
from lance_ops.spark.sql_access.expressions import parse_expression
from lance_ops.spark.sql_access.queries import lance_query, run_query
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.sql_access.reference_statements import REFERENCE_ALTERATIONS
from lance_ops.spark.sql_access.statement import Statement, check_has_no_addresses, read_key
from lance_ops.spark.sql_access.table_references import FORMAT, read_version_clause
from lance_ops.spark.sql_access.words import Kind, Reader
from lance_ops.spark.table_query import TableQuery
from lance_ops.spark.translation import arrow_schema_of, quoted_path, schema_from_spark

__all__ = ["TABLE_STATEMENTS"]

_CLONES = ("DEEP", "SHALLOW", "CLONE")
_FILE_VERSION = "data_storage_version"
_TABLES = "namespace string not null, tableName string not null, isTemporary boolean not null"


def _create_table(statement: Statement) -> DataFrame | None:
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t [(columns)] [USING lance] [TBLPROPERTIES (…)] [AS query], or a clone.

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
    if any(reader.peek(word) for word in _CLONES):
        return _clone(statement, parts, keep=keep, replace=replace)
    columns = _in_brackets(statement) if reader.peek("(") else None
    using = reader.name("a format").lower() if reader.accept("USING") else None
    table = None if using not in (None, FORMAT) else statement.tables.place(parts, named=using == FORMAT)
    if table is None:
        return lance_query(reader.text, statement.tables.to_write())
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
            rows, given = run_query(query, statement.tables.to_write()), table.storage_options
            write_with(rows, table.location, mode, options, given, on_progress=statement.on_progress)
    except DatasetAlreadyExists:
        if not keep:
            raise DatasetAlreadyExists(
                f"{table.location}: CREATE OR REPLACE TABLE writes a new version with other columns"
            ) from None
    return statement.nothing()


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


def _drop_table(statement: Statement) -> None:
    """Refuse DROP TABLE [IF EXISTS] of a Lance table: Spark, which does not know the table, may do nothing."""
    statement.reader.accept("IF", "EXISTS")
    table = statement.table()
    if table is not None and _is_there(statement, table):
        raise UnsupportedFeature(
            f"DROP of a Lance table (lance_ops.LanceDataset.drop({table.location!r}) removes it with all versions)"
        )


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
    """ALTER TABLE t ADD | UPDATE | DROP | RENAME | ALTER COLUMN …, SET | UNSET TBLPROPERTIES …, or a tag or branch."""
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
    source = _values_by_row(reader)
    if source is not None:
        _add_values(statement, opened, lambda table: source(statement, table))
        return
    if reader.peek("("):
        _add_nulls(statement, opened, _in_brackets(statement))
        return
    begin = reader.at
    name = reader.name("a column with its type, or AS and an expression")
    if reader.accept("AS"):
        statement.check_new_name(opened, name)
        expression = _in_brackets(statement)
        reader.end()
        _add_values(statement, opened, lambda table: _computed_values(statement, table, name, expression))
    else:
        reader.at = begin
        _add_nulls(statement, opened, reader.rest("a column with its type"))


def _add_values(
    statement: Statement, opened: LanceDataset, values: Callable[[LanceDataset], DataFrame | pa.Table]
) -> None:
    """Add columns of the values that a function returns for a version and its rows."""

    def change(table: LanceDataset) -> None:
        table.add_columns(values(table), conflict_retries=0, runner=statement.runner)

    _retried(statement, opened, change)


def _computed_values(statement: Statement, opened: LanceDataset, name: str, expression: str) -> DataFrame | pa.Table:
    """Return the value that Spark computes for each row, and its address."""
    names = opened.snapshot.schema.names
    check_has_no_addresses(statement, opened.snapshot)
    columns = parse_expression(expression).find_all(exp.Column)
    asked = {part for column in columns for part in name_parts(column)}
    read = {found for each in asked if (found := statement.case_rule.find(each, names)) is not None}
    paths = [f"`{each}`" if "." in each else each for each in names if each in read]
    table = TableQuery(statement.tables.session, opened.snapshot, blob_handling=statement.tables.blob_handling)
    rows = table.select(*paths, ROW_ADDRESS).load()
    return statement.rows_for(rows.select(ROW_ADDRESS, expr(expression).alias(name)), opened)


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
    source = _values_by_row(statement.reader)
    if source is None:
        raise statement.reader.error("columns, FROM and a source with _rowaddr or _rowid")

    def change(table: LanceDataset) -> None:
        table.update_columns(source(statement, table), conflict_retries=0, runner=statement.runner)

    _retried(statement, opened, change)


def _retried(statement: Statement, opened: LanceDataset, change: Callable[[LanceDataset], None]) -> None:
    """Change the opened version; after a conflict change the newest one, with values computed from its rows.

    The change is one attempt: the values that it has computed are of one version alone.
    """
    statement.retried(opened, lambda current: change(LanceDataset.of(current)))


@dataclass(frozen=True)
class _ValuesByRow:
    """Columns of a table or a query, which also names the rows of the changed table that their values are for."""

    names: list[str]
    query: str

    def __call__(self, statement: Statement, opened: LanceDataset) -> DataFrame | pa.Table:
        """Return these columns and those that name rows. The query reads the opened version."""
        frame = run_query(f"SELECT * FROM {self.query}", statement.tables.reading(opened.snapshot).to_write())
        keys = [name for name in frame.columns if name.lower() in (ROW_ADDRESS, ROW_ID)]
        return statement.rows_for(frame.select(*keys, *(quoted_path(name) for name in self.names)), opened)


def _values_by_row(reader: Reader) -> _ValuesByRow | None:
    """Read `a, b FROM name | (query)`; None if it is something else."""
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
    return _ValuesByRow(names, reader.rest("a table or a query"))


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
    statement.reader.end()
    if path in opened.snapshot.schema.names:
        statement.check_new_name(opened, name, besides=path)
    opened.alter_columns({"path": path, "name": name})


def _alter_column(statement: Statement, opened: LanceDataset) -> None:
    reader = statement.reader
    path = statement.column_path(opened)
    if reader.accept("TYPE"):
        data_type = _arrow_schema(_one_type(reader.rest("a type"))).field(0).type
        opened.alter_columns({"path": path, "data_type": data_type}, runner=statement.runner)
    elif reader.accept("DROP", "NOT", "NULL"):
        reader.end()
        opened.alter_columns({"path": path, "nullable": True}, runner=statement.runner)
    else:
        reader.expect("SET", "NOT", "NULL")
        reader.end()
        opened.alter_columns({"path": path, "nullable": False}, runner=statement.runner)


def _one_type(text: str) -> StructType:
    """Return a column of the type that a text names; raise `InvalidInput` if it says more than a type."""
    declared = _declared(f"x {text}")
    if len(declared.fields) > 1 or not declared.fields[0].nullable or declared.fields[0].metadata:
        raise InvalidInput(f"ALTER COLUMN … TYPE {text}: give one type, and change other things by other statements")
    return declared


def _set_properties(statement: Statement, opened: LanceDataset) -> None:
    """Set keys of the table's configuration; the key `data_storage_version` rewrites its files, by tasks."""
    values: dict[str, str | None] = {**statement.properties()}
    statement.reader.end()
    file_version = values.pop(_FILE_VERSION, None)
    if file_version is not None:
        opened.optimize.migrate_files(file_version, runner=statement.runner)
    if values:
        opened.update_config(values)


def _unset_properties(statement: Statement, opened: LanceDataset) -> None:
    """Remove keys, in brackets, of the table's configuration; without IF EXISTS each must be there."""
    reader = statement.reader
    if_exists = reader.accept("IF", "EXISTS")
    keys = _keys(reader)
    reader.end()
    missing = [key for key in keys if key not in opened.config()]
    if missing and not if_exists:
        raise InvalidInput(f"{opened.uri} has no property {', '.join(missing)}: write UNSET TBLPROPERTIES IF EXISTS")
    opened.delete_config_keys([key for key in keys if key not in missing])


def _keys(reader: Reader) -> list[str]:
    reader.expect("(")
    keys = [read_key(reader)]
    while reader.accept(","):
        keys.append(read_key(reader))
    reader.expect(")")
    return keys


def _declared(columns: str) -> StructType:
    """Return the columns that Spark's words declare.

    Raises `UnsupportedFeature` for a NOT NULL within one, a text of bounded length, and a collation.
    """
    declared = StructType.fromDDL(columns)
    assert isinstance(declared, StructType)
    for column in declared.fields:
        if isinstance(column.dataType, CharType | VarcharType):
            raise UnsupportedFeature(
                f"column {column.name} of type {column.dataType.simpleString()} (declare it STRING)"
            )
        if isinstance(column.dataType, StringType) and column.dataType.simpleString() != "string":
            raise UnsupportedFeature(f"a collation of column {column.name} (tables compare the bytes of texts)")
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
    return schema_from_spark(arrow_schema_of(declared), {})


def _show_tables(statement: Statement) -> DataFrame | None:
    """SHOW TABLES [IN lance] [[LIKE] 'pattern']: Spark's tables and views, then those of the namespace.

    The column `namespace` is `lance` for a table of the namespace, as in ``lance.`name` ``. IN lance shows these alone.
    """
    reader, namespace = statement.reader, statement.tables.namespace
    database = reader.name("a database") if reader.accept_any("IN", "FROM") else None
    if namespace is None or (database or FORMAT).lower() != FORMAT:
        return None
    has_pattern = reader.accept("LIKE") or (reader.next is not None and reader.next.kind is Kind.TEXT)
    pattern = reader.literal("a pattern in quotes") if has_pattern else "*"
    reader.end()
    rows = [(FORMAT, name, False) for name in namespace.list_tables() if _is_like(name, pattern)]
    own = statement.result(_TABLES, rows)
    return own if database else statement.tables.session.sql(reader.text).union(own)


def _is_like(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern of Spark: `*` is any text, and `|` stands between alternatives."""
    texts = (".*".join(map(re.escape, part.strip().split("*"))) for part in pattern.split("|"))
    return any(re.fullmatch(text, name, re.IGNORECASE) for text in texts)


_ALTERATIONS: tuple[tuple[tuple[str, ...], Callable[[Statement, LanceDataset], None]], ...] = (
    (("ADD", "COLUMNS"), _add_columns),
    (("ADD", "COLUMN"), _add_columns),
    (("UPDATE", "COLUMNS"), _update_columns),
    (("UPDATE", "COLUMN"), _update_columns),
    (("DROP", "COLUMNS"), _drop_columns),
    (("DROP", "COLUMN"), _drop_columns),
    (("RENAME", "COLUMN"), _rename_column),
    (("ALTER", "COLUMN"), _alter_column),
    (("SET", "TBLPROPERTIES"), _set_properties),
    (("UNSET", "TBLPROPERTIES"), _unset_properties),
    *REFERENCE_ALTERATIONS,
)

TABLE_STATEMENTS = (
    (("CREATE",), _create_table),
    (("DROP", "TABLE"), _drop_table),
    (("ALTER", "TABLE"), _alter_table),
    (("SHOW", "TABLES"), _show_tables),
)
"""Which words begin a statement, and what executes it."""
