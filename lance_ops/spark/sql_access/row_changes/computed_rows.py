"""Rows of a table that Spark chooses by a condition, with the values that it computes for them.

The condition and the values stand in a query of Spark as the user wrote them. So each function, type and setting of the
session means what it means in a SELECT, and a DELETE removes the rows that a SELECT with its condition shows. Rows are
named by their addresses in the version that the query reads.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, lit
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructField
from sqlglot import exp

from lance_ops.core.errors import SchemaMismatch, UnsupportedFeature
from lance_ops.reading import ROW_ADDRESS
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source import SourceOptions, visible_schema
from lance_ops.spark.sql_access.expressions import parse_expression, quoted_path
from lance_ops.spark.sql_access.queries import run_query
from lance_ops.spark.sql_access.row_changes.changed_rows import change_rows
from lance_ops.spark.sql_access.statement import Statement, TableInStatement
from lance_ops.spark.translation import assigned_value, has_nanoseconds, is_nested

__all__ = ["computed_rows", "delete_computed", "update_computed"]


def computed_rows(
    statement: Statement, snapshot: Snapshot, table: TableInStatement, condition: str | None, values: Mapping[str, str]
) -> DataFrame:
    """Return the address of each row of a version that meets a condition, and its values by the names of their columns.

    Subqueries on the same table read the same version. The address is in the column `_rowaddr`. Raises
    `UnsupportedFeature` for a table that has such a column itself.
    """
    if statement.case_rule.find(ROW_ADDRESS, snapshot.schema.names) is not None:
        raise UnsupportedFeature(f"a change by an expression of Spark, of a table that has a column {ROW_ADDRESS!r}")
    selected = ", ".join([ROW_ADDRESS, *(f"({text}) AS {quoted_path(name)}" for name, text in values.items())])
    where = "" if condition is None else f" WHERE ({condition})"
    tables = statement.tables.reading(table.description, snapshot.version)
    return run_query(f"SELECT {selected} FROM {table.reference}{where}", tables)


def delete_computed(statement: Statement, snapshot: Snapshot, table: TableInStatement, condition: str) -> int:
    """Delete the rows that meet a condition; return their number. Raises as `change_rows` does."""
    rows = computed_rows(statement, snapshot, table, condition, {}).select(lit("DELETE"), ROW_ADDRESS)
    return change_rows(statement, snapshot, rows, (), "delete", predicate=condition).deleted


def update_computed(
    statement: Statement, snapshot: Snapshot, table: TableInStatement, condition: str | None, values: Mapping[str, str]
) -> int:
    """Give columns of the rows that meet a condition new values; return the number of rows.

    Raises `UnsupportedFeature` for a new value that Spark would cut, `SchemaMismatch` for one that cannot be assigned,
    and as `change_rows` does.
    """
    _check_nanoseconds(statement, snapshot, values)
    rows = computed_rows(statement, snapshot, table, condition, values)
    types = {field.name: field.dataType for field in from_arrow_schema(visible_schema(_options(snapshot), snapshot))}
    assigned = (_assigned(field, types[field.name]) for field in rows.schema.fields[1:])
    return change_rows(
        statement, snapshot, rows.select(lit("UPDATE"), ROW_ADDRESS, *assigned), values, "update"
    ).updated


def _options(snapshot: Snapshot) -> SourceOptions:
    return SourceOptions(path=snapshot.uri)


def _check_nanoseconds(statement: Statement, snapshot: Snapshot, values: Mapping[str, str]) -> None:
    fine = tuple(field.name for field in snapshot.schema.fields if has_nanoseconds(field))
    for name, text in values.items():
        read = {column.name for column in parse_expression(text).find_all(exp.Column)}
        if name in fine and any(statement.case_rule.find(each, fine) for each in read):
            raise UnsupportedFeature(f"{name} = {text}: Spark cuts the nanoseconds of the value that it reads")


def _assigned(field: StructField, kind: DataType) -> Column:
    """Return the values of a column as Spark assigns them to one of this type; nested values stay as they are."""
    value = col(quoted_path(field.name))
    what = f"column {field.name!r} of type {kind.simpleString()}"
    if is_nested(kind) != is_nested(field.dataType) and field.dataType.typeName() != "void":
        raise SchemaMismatch(f"UPDATE: {what} gets a {field.dataType.simpleString()}: cast the value")
    if not is_nested(kind):
        value = assigned_value(value, field.dataType, kind, f"UPDATE: a value does not fit {what}")
    return value.alias(field.name)
