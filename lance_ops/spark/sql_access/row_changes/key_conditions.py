"""Tell the condition `column IN (query)` from others: the query's values are joined by key."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from sqlglot import exp

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.expressions import parse_expression
from lance_ops.spark.sql_access.queries import run_query
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.sql_access.statement import Statement, TableInStatement
from lance_ops.spark.sql_access.words import Reader
from lance_ops.spark.translation import compares_keys_alike, has_nanoseconds, rows_with_possible_keys

__all__ = ["KeyCondition", "key_condition", "keys_of_query"]


@dataclass(frozen=True)
class KeyCondition:
    """`column IN (query)`, with the query as the user wrote it."""

    column: tuple[str, ...]
    query: str


def key_condition(condition: str) -> KeyCondition | None:
    """Return the parts of such a condition; None for any other condition, and where AND or OR joins it with others."""
    tree = parse_expression(condition).unnest()
    if not isinstance(tree, exp.In) or tree.args.get("query") is None or not isinstance(tree.this, exp.Column):
        return None
    reader = Reader(condition)
    while not reader.accept("IN", "("):
        if reader.ended:  # sqlglot takes other brackets, too
            return None
        reader.at += 1
    return KeyCondition(name_parts(tree.this), reader.until(what="a query"))


def keys_of_query(
    statement: Statement, opened: LanceDataset, condition: str, table: TableInStatement
) -> tuple[str, DataFrame | pa.Table] | None:
    """Return the column and the values of a condition `column IN (query)`.

    Returns None for any other condition, for a query that reads the row as well, and for values that Spark may compare
    otherwise than the library. The query reads the opened version, if it reads the same table.
    """
    found = key_condition(condition)
    if found is None:
        return None
    tables = statement.tables.reading(opened.snapshot)
    try:
        column = statement.column(opened, found.column, table.qualifier)
        values = run_query(found.query, tables)
    except (AnalysisException, InvalidInput):  # of the query alone: Spark tells the mistake, if it is one
        return None
    schema = opened.snapshot.schema
    if len(values.columns) != 1:
        return None
    values = values.toDF(column)
    if has_nanoseconds(schema.field(column)) or not compares_keys_alike(values.schema, schema):
        return None
    return column, statement.rows_for(rows_with_possible_keys(values, [column], schema), opened)
