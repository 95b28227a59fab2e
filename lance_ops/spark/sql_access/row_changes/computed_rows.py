"""Rows of a table that Spark chooses by a condition, with the values that it computes for them.

The condition and the values stand in a query of Spark as the user wrote them. So each function, type and setting of the
session means what it means in a SELECT, and a DELETE removes the rows that a SELECT with its condition shows. Rows are
named by their addresses in the version that the query reads.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType
from sqlglot import exp

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_ADDRESS
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source import SourceOptions, visible_schema
from lance_ops.spark.sql_access.expressions import names_in, parse_expression
from lance_ops.spark.sql_access.queries import run_query
from lance_ops.spark.sql_access.row_changes.changed_rows import change_rows
from lance_ops.spark.sql_access.statement import Statement, TableInStatement, check_has_no_addresses
from lance_ops.spark.translation import assigned_columns, has_nanoseconds, quoted_path

__all__ = ["computed_rows", "delete_computed", "plain_types", "update_computed", "visible_types"]


def computed_rows(
    statement: Statement, snapshot: Snapshot, table: TableInStatement, condition: str | None, values: Mapping[str, str]
) -> DataFrame:
    """Return the address of each row of a version that meets a condition, and its values by the names of their columns.

    Subqueries on the same table read the same version. The address is in the column `_rowaddr`. Raises
    `UnsupportedFeature` for a table that has such a column itself.
    """
    check_has_no_addresses(statement, snapshot)
    selected = ", ".join([ROW_ADDRESS, *(f"({text}) AS {quoted_path(name)}" for name, text in values.items())])
    where = "" if condition is None else f" WHERE ({condition})"
    tables = statement.tables.reading(snapshot)
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
    for name, text in values.items():
        _check_value(statement, snapshot.schema, name, text)
    rows = computed_rows(statement, snapshot, table, condition, values)
    columns = assigned_columns("UPDATE", rows, plain_types(snapshot))
    return change_rows(statement, snapshot, rows.select(lit("UPDATE"), *columns), values, "update").updated


def visible_types(snapshot: Snapshot) -> dict[str, DataType]:
    """Return the types that Spark sees of a table's columns."""
    visible = from_arrow_schema(visible_schema(SourceOptions(path=snapshot.uri), snapshot))
    return {field.name: field.dataType for field in visible}


def plain_types(snapshot: Snapshot) -> dict[str, DataType]:
    """Return the types as `visible_types`, without columns of blobs: Spark sees descriptions of their values."""
    blobs = {column.name for column in snapshot.schema.fields if column.holds_blobs_v2}
    return {name: kind for name, kind in visible_types(snapshot).items() if name not in blobs}


def _check_value(statement: Statement, schema: Schema, name: str, text: str) -> None:
    """Raise `UnsupportedFeature` for a value that would be cut, or be none or several for a row."""
    tree = parse_expression(text)
    if tree.find(exp.UDTF) is not None:
        raise UnsupportedFeature(f"{name} = {text}: a function that gives several rows, as the value of one row")
    if not has_nanoseconds(schema.field(name)):
        return
    fine = tuple(column.name for column in schema.fields if has_nanoseconds(column))
    if tree.find(exp.Query) is not None or any(statement.case_rule.find(each, fine) for each in names_in(text)):
        raise UnsupportedFeature(
            f"{name} = {text}: Spark cuts the nanoseconds of the values that it reads (write the moment, or use "
            "LanceDataset.update)"
        )
