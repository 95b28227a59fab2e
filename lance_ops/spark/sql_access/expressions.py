"""Parse expressions of Spark's SQL, to see which columns and conditions are in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lance_ops.core.errors import InvalidInput
from lance_ops.spark.sql_access.dialect import SparkSql

__all__ = ["conjuncts", "parse_expression", "unused_name"]


def parse_expression(text: str) -> exp.Expr:
    """Return the tree of one expression; raise `InvalidInput` naming the place where it does not parse."""
    try:
        tree = sqlglot.parse_one(f"SELECT {text}", dialect=SparkSql)
    except (SqlglotError, RecursionError) as error:
        reason = str(error).splitlines()[0] if isinstance(error, SqlglotError) else "nested too deeply"
        raise InvalidInput(f"SQL on a Lance table: {text!r} does not parse: {reason}") from error
    used = {name for name, value in tree.args.items() if value}
    if not isinstance(tree, exp.Select) or used - {"expressions"} or len(tree.expressions) != 1:
        raise InvalidInput(f"SQL on a Lance table: {text!r} is not one expression")
    found = tree.expressions[0]
    assert isinstance(found, exp.Expr)
    return found


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions that AND joins, in brackets or not."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        yield from conjuncts(tree.this)
        yield from conjuncts(tree.expression)
    else:
        yield tree


def unused_name(names: Sequence[str]) -> str:
    """Return a name that no column has, in any case."""
    longest = max(map(len, names), default=0)
    return "_" * (longest + 1)
