"""Tell the condition `column IN (query)` of a DELETE from others: the query's values are joined by key."""

from __future__ import annotations

from sqlglot import exp

from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.expressions import parse_expression
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.sql_access.words import Reader

__all__ = ["KeyCondition", "key_condition"]


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
        reader.at += 1
    return KeyCondition(name_parts(tree.this), reader.until(what="a query"))
