"""SHOW DUPLICATES and DELETE DUPLICATES: rows that have the same values of some columns as others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from lance_ops.api import LanceDataset
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.spark.sql_access.statement import Statement

__all__ = ["DUPLICATE_STATEMENTS"]

_SHOW_OPTIONS: Mapping[str, Callable[[str], Any]] = {"examples": int}
_KEYS = (
    "num_keys bigint, num_rows bigint, num_surplus_rows bigint, "
    "examples array<struct<key: map<string, string>, num_rows: bigint>>"
)


def _show_duplicates(statement: Statement) -> DataFrame:
    """SHOW DUPLICATES IN t ON (columns) [WHERE condition] [WITH (examples = n)]: a row with numbers and examples.

    `num_keys` are the keys of several rows, `num_rows` the rows with these keys, and `num_surplus_rows` those of them
    that would go if each key kept one. The examples are the most frequent keys.
    """
    reader = statement.reader
    opened, columns = _table_and_columns(statement, "IN", "FROM")
    filter_sql = None
    if reader.accept("WHERE"):
        condition = reader.until("WITH", what="a condition")
        predicate = statement.predicate(opened.snapshot.schema, condition)
        if predicate is None:
            raise UnsupportedFeature(
                f"SHOW DUPLICATES … WHERE {condition} (compare columns with constants, as in day = DATE '2026-01-31')"
            )
        filter_sql = predicate.to_sql()
    options = statement.options("SHOW DUPLICATES", _SHOW_OPTIONS)
    reader.end()
    found = opened.duplicates(columns, filter_sql, **options, runner=statement.runner)
    examples = [
        ({name: str(value) for name, value in zip(columns, each.values, strict=True)}, each.num_rows)
        for each in found.examples
    ]
    return statement.result(_KEYS, [(found.num_keys, found.num_rows, found.num_surplus_rows, examples)])


def _delete_duplicates(statement: Statement) -> DataFrame:
    """DELETE DUPLICATES FROM t ON (columns) [KEEP FIRST | LAST] [DRY RUN]: one row of each key stays.

    It is the first one in the order of a scan, or with KEEP LAST the last one. A dry run counts the rows that would go.
    """
    reader = statement.reader
    opened, columns = _table_and_columns(statement, "FROM")
    keep = "FIRST"
    if reader.accept("KEEP"):
        keep = reader.accept_any("FIRST", "LAST") or ""
        if not keep:
            raise reader.error("FIRST or LAST")
    is_dry = reader.accept("DRY", "RUN")
    reader.end()
    if is_dry:
        num_rows = opened.duplicates(columns, examples=0, runner=statement.runner).num_surplus_rows
    else:
        num_rows = opened.delete_duplicates(columns, keep.lower(), runner=statement.runner)["num_deleted_rows"]
    return statement.result("num_affected_rows bigint", [(num_rows,)])


def _table_and_columns(statement: Statement, *keywords: str) -> tuple[LanceDataset, list[str]]:
    """Read one of the keywords, the name of a Lance table, ON and columns of it, each once; open the table."""
    reader = statement.reader
    if reader.accept_any(*keywords) is None:
        raise reader.error(" or ".join(keywords))
    opened = statement.tables.open(statement.lance_table())
    reader.expect("ON")
    return opened, list(dict.fromkeys(statement.column_paths(opened)))


DUPLICATE_STATEMENTS = (
    (("SHOW", "DUPLICATES"), _show_duplicates),
    (("DELETE", "DUPLICATES"), _delete_duplicates),
)
"""Which words begin a statement, and what executes it."""
