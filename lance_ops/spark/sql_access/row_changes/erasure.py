"""ERASE: rows go from every version, tag and branch, and a record beneath the table's root says what is proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.spark.sql_access.row_changes.computed_rows import computed_rows
from lance_ops.spark.sql_access.row_changes.key_conditions import keys_of_query
from lance_ops.spark.sql_access.statement import Statement, read_switch

__all__ = ["ERASURE_STATEMENTS"]

_OPTIONS: Mapping[str, Callable[[str], Any]] = {
    "remove_tags": read_switch,
    "rewrite_branches": read_switch,
    "delete_unverified": read_switch,
    "at_most_rows": int,
}
_ERASED = "num_erased_rows bigint, is_proven boolean, unproven array<string>, record string"


def _erase(statement: Statement) -> DataFrame | None:
    """ERASE FROM t REASON 'text' [WITH (option = value, …)] WHERE condition: see `LanceDataset.erase`.

    The library itself finds the rows in each version, so the condition must mean the same to it as to Spark, or be
    `column IN (query)`. The query runs once. `record` is the path of the record beneath the table's root.
    """
    reader = statement.reader
    reader.expect("FROM")
    table = statement.named_table("REASON")
    if table is None:
        return None
    reader.expect("REASON")
    reason = reader.literal("a text in quotes, which says why the rows go")
    options = statement.options("ERASE", _OPTIONS)
    reader.expect("WHERE")
    condition = reader.rest("a condition")
    opened = statement.tables.open(table.description)
    predicate = statement.predicate(opened.snapshot.schema, condition, table.qualifier)
    if predicate is not None:
        report = opened.erase(predicate.to_sql(), reason=reason, **options, runner=statement.runner)
    else:
        keys = keys_of_query(statement, opened, condition, table)
        if keys is None:
            computed_rows(statement, opened.snapshot, table, condition, {})  # Spark tells a mistake in the condition
            raise UnsupportedFeature(
                f"ERASE … WHERE {condition} (compare columns with constants, or write key IN (SELECT key FROM "
                f"{table.name} WHERE …), which may have any condition and finds the keys of the newest version)"
            )
        name, source = keys
        report = opened.erase(keys=source, on=name, reason=reason, **options, runner=statement.runner)
    row = (report.erased_rows, report.is_proven, list(report.unproven), report.json_path)
    return statement.result(_ERASED, [row])


ERASURE_STATEMENTS: tuple[tuple[tuple[str, ...], Callable[[Statement], DataFrame | None]], ...] = (
    (("ERASE",), _erase),
)
"""Which words begin a statement, and what executes it."""
