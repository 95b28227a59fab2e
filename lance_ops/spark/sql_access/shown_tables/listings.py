"""SHOW TABLES."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame

from lance_ops.spark.sql_access.statement import Statement
from lance_ops.spark.sql_access.table_references import FORMAT
from lance_ops.spark.sql_access.words import Kind

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


SHOW_STATEMENTS = ((("SHOW", "TABLES"), _show_tables),)
"""Which words begin a statement, and what executes it."""
