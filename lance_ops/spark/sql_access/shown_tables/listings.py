"""SHOW: the tables that there are, and the columns, properties and declaration of one."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lance_ops.api import LanceDataset
from lance_ops.spark.sql_access.shown_tables.columns import COMMENT, shown_columns
from lance_ops.spark.sql_access.statement import Statement, read_key
from lance_ops.spark.sql_access.table_references import FORMAT
from lance_ops.spark.sql_access.words import Kind, text_literal
from lance_ops.spark.translation import is_hint, quoted_path

__all__ = ["SHOW_STATEMENTS"]

_TABLES = "namespace string not null, tableName string not null, isTemporary boolean not null"


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


def _show_columns(statement: Statement) -> DataFrame | None:
    """SHOW COLUMNS IN t: the names of the columns. With `FROM database` behind it, the table is one of Spark's."""
    reader = statement.reader
    reader.accept_any("IN", "FROM")
    if reader.next is None or not reader.next.is_name:
        return None
    path = reader.path("a table")
    table = None if reader.accept_any("IN", "FROM") else statement.tables.find(path)
    if table is None:
        return None
    reader.end()
    names = statement.tables.open(table).snapshot.schema.names
    return statement.result("col_name string", [(name,) for name in names])


def _show_properties(statement: Statement) -> DataFrame | None:
    """SHOW TBLPROPERTIES t [('key')]: the table's configuration, or one key of it; a missing key has the value null."""
    reader = statement.reader
    table = statement.table()
    if table is None:
        return None
    key = None
    if reader.accept("("):
        key = read_key(reader)
        reader.expect(")")
    reader.end()
    config = statement.tables.open(table).config()
    rows = sorted(config.items()) if key is None else [(key, config.get(key))]
    return statement.result("key string, value string", rows)


def _show_create_table(statement: Statement) -> DataFrame | None:
    """SHOW CREATE TABLE t: the statement that makes a table like this one, without rows."""
    table = statement.table()
    if table is None:
        return None
    statement.reader.end()
    return statement.result("createtab_stmt string", [(_declaration(statement.tables.open(table)),)])


def _declaration(opened: LanceDataset) -> str:
    columns, config = shown_columns(opened), opened.config()
    comment = config.pop(COMMENT, None)
    hints = {
        f"{field.name}.{key}": str(value)
        for field in columns
        for key, value in field.metadata.items()
        if is_hint(f"{field.name}.{key}")
    }
    options = {**hints, "data_storage_version": opened.data_storage_version}
    if opened.has_stable_row_ids:
        options["enable_stable_row_ids"] = "true"
    properties = {**options, **{f"config.{key}": value for key, value in config.items()}}
    lines = [
        f"CREATE TABLE {FORMAT}.{quoted_path(opened.uri)} (",
        ",\n".join(f"  {StructType([field]).toDDL()}" for field in columns) + ")",
        f"USING {FORMAT}",
        *([] if comment is None else [f"COMMENT {text_literal(comment)}"]),
        "TBLPROPERTIES (",
        ",\n".join(f"  {text_literal(key)} = {text_literal(value)}" for key, value in properties.items()) + ")",
    ]
    return "\n".join(lines)


SHOW_STATEMENTS = (
    (("SHOW", "TABLES"), _show_tables),
    (("SHOW", "COLUMNS"), _show_columns),
    (("SHOW", "TBLPROPERTIES"), _show_properties),
    (("SHOW", "CREATE", "TABLE"), _show_create_table),
)
"""Which words begin a statement, and what executes it."""
