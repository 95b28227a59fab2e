"""ALTER TABLE: columns, properties, and names of versions."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.reading import ROW_ADDRESS, ROW_ID
from lance_ops.spark.sql_access.expressions import names_in
from lance_ops.spark.sql_access.index_statements import INDEX_ALTERATIONS
from lance_ops.spark.sql_access.queries import run_query
from lance_ops.spark.sql_access.reference_statements import REFERENCE_ALTERATIONS
from lance_ops.spark.sql_access.shown_tables import COMMENT
from lance_ops.spark.sql_access.statement import Statement, check_has_no_addresses, read_key
from lance_ops.spark.sql_access.table_definition.declared_columns import declared_arrow_schema, declared_columns
from lance_ops.spark.sql_access.table_references import FORMAT
from lance_ops.spark.sql_access.words import Reader
from lance_ops.spark.table_query import TableQuery
from lance_ops.spark.translation import quoted_path

__all__ = ["ALTERATION_STATEMENTS"]

_FILE_VERSION = "data_storage_version"


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
        _add_nulls(statement, opened, reader.in_brackets("columns"))
        return
    begin = reader.at
    name = reader.name("a column with its type, or AS and an expression")
    if reader.accept("AS"):
        statement.check_new_name(opened, name)
        expression = reader.in_brackets("an expression")
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
    read = {found for each in names_in(expression) if (found := statement.case_rule.find(each, names)) is not None}
    paths = [f"`{each}`" if "." in each else each for each in names if each in read]
    table = TableQuery(statement.tables.session, opened.snapshot, blob_handling=statement.tables.blob_handling)
    rows = table.select(*paths, ROW_ADDRESS).load()
    value = f"({expression}) AS {quoted_path(name)}".replace("{", "{{").replace("}", "}}")
    computed = statement.tables.spark_sql(f"SELECT {ROW_ADDRESS}, {value} FROM {{rows}}", rows=rows)
    return statement.rows_for(computed, opened)


def _add_nulls(statement: Statement, opened: LanceDataset, columns: str) -> None:
    declared = declared_columns(columns)
    for field in declared.fields:
        statement.check_new_name(opened, field.name)
        if not field.nullable:
            raise InvalidInput(
                f"ADD COLUMN {field.name} NOT NULL: the table's rows have no values of it; add it without NOT NULL, "
                f"give it values by UPDATE, and then ALTER COLUMN {field.name} SET NOT NULL"
            )
    opened.add_columns(declared_arrow_schema(declared))


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
        frame = run_query(f"SELECT * FROM {self.query}", statement.tables.reading(opened.snapshot).for_query_to_write())
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
        data_type = declared_arrow_schema(_one_type(reader.rest("a type"))).field(0).type
        opened.alter_columns({"path": path, "data_type": data_type}, runner=statement.runner)
    elif reader.accept("COMMENT"):
        _comment_column(opened, path, _comment(reader))
    elif reader.accept("DROP", "NOT", "NULL"):
        reader.end()
        opened.alter_columns({"path": path, "nullable": True}, runner=statement.runner)
    else:
        reader.expect("SET", "NOT", "NULL")
        reader.end()
        opened.alter_columns({"path": path, "nullable": False}, runner=statement.runner)


def _one_type(text: str) -> StructType:
    """Return a column of the type that a text names; raise `InvalidInput` if it says more than a type."""
    declared = declared_columns(f"x {text}")
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


def _comment_on_table(statement: Statement) -> DataFrame | None:
    """COMMENT ON TABLE t IS 'text' | NULL: the key `comment` of the configuration."""
    table = statement.table()
    if table is None:
        return None
    statement.reader.expect("IS")
    comment = _comment(statement.reader)
    statement.tables.open(table).update_config({COMMENT: comment})
    return statement.nothing()


def _comment_on_column(statement: Statement) -> DataFrame | None:
    """COMMENT ON COLUMN t.a IS 'text' | NULL: the key `comment` of the column's metadata."""
    path = statement.reader.path("a table and a column")
    is_path = path[0].lower() == FORMAT and len(path) > 2
    table = statement.tables.find(path[: 1 + is_path])
    if table is None:
        return None
    opened = statement.tables.open(table)
    column = statement.stored_path(opened, path[1 + is_path :])
    statement.reader.expect("IS")
    _comment_column(opened, column, _comment(statement.reader))
    return statement.nothing()


def _comment(reader: Reader) -> str | None:
    """Read a comment, which ends the statement; NULL removes one."""
    comment = None if reader.accept("NULL") else reader.literal("a comment in quotes, or NULL")
    reader.end()
    return comment


def _comment_column(opened: LanceDataset, path: str, comment: str | None) -> None:
    opened.update_field_metadata({path: {COMMENT: comment}})


def _keys(reader: Reader) -> list[str]:
    reader.expect("(")
    keys = [read_key(reader)]
    while reader.accept(","):
        keys.append(read_key(reader))
    reader.expect(")")
    return keys


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
    *INDEX_ALTERATIONS,
)

ALTERATION_STATEMENTS: tuple[tuple[tuple[str, ...], Callable[[Statement], DataFrame | None]], ...] = (
    (("ALTER", "TABLE"), _alter_table),
    (("COMMENT", "ON", "TABLE"), _comment_on_table),
    (("COMMENT", "ON", "COLUMN"), _comment_on_column),
)
"""Which words begin a statement, and what executes it."""
