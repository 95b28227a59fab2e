"""Choose for each source row of a merge the clause that it takes part by, and compute the values of this clause.

A merge of the library writes a source row as it is, whether it updates a row of the table or is inserted. So where
values or conditions read both tables, or several clauses share the rows, Spark pairs each source row with the row of
the table that it matches, and gives the source row the values of the first clause whose condition is true. A source row
of no clause is dropped. Only the columns that the clauses read are joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from lance_ops.core.records import dataclass

__all__ = ["Choice", "chosen_rows"]

_IS_MATCHED = "_is_matched"


@dataclass(frozen=True)
class Choice:
    """A clause: its condition, and its values by the table's column, as SQL over both tables."""

    condition: str | None
    values: Mapping[str, str]


def chosen_rows(
    source: DataFrame,
    table: DataFrame,
    target: str,
    keys: Mapping[str, str],
    choices: tuple[list[Choice], list[Choice]],
) -> DataFrame:
    """Return the source rows that take part, with the columns of `keys` and those that any clause has a value for.

    `source` has its alias, and `table` gets the alias `target`. `keys` are the source's expressions of the table's
    key columns. `choices` are the clauses of matched rows and of others. Without clauses, matched rows stay with nulls,
    so that the merge does not take their rows of the table for unmatched ones, and others are dropped.
    """
    matched, others = choices
    aliased = table.withColumn(_IS_MATCHED, F.lit(True)).alias(target)
    is_same_key = reduce(Column.__and__, (_of(target, name) == F.expr(text) for name, text in keys.items()))
    joined = source.join(aliased, is_same_key, "left")
    is_matched = _of(target, _IS_MATCHED).isNotNull()
    takes_part = F.when(is_matched, _any(matched) if matched else F.lit(True)).otherwise(_any(others))
    written = dict.fromkeys(name for choice in (*matched, *others) for name in choice.values if name not in keys)
    return joined.where(takes_part).select(
        *(F.expr(text).alias(name) for name, text in keys.items()),
        *(F.when(is_matched, _first(matched, name)).otherwise(_first(others, name)).alias(name) for name in written),
    )


def _any(choices: Sequence[Choice]) -> Column:
    """Return whether a row takes part by any of the clauses."""
    return reduce(Column.__or__, map(_is_met, choices), F.lit(False))


def _first(choices: Sequence[Choice], name: str) -> Column:
    """Return a column's value by the first clause whose condition is true; null if this clause has none."""
    value = F.lit(None)
    for choice in reversed(choices):
        value = F.when(_is_met(choice), F.expr(choice.values.get(name, "NULL"))).otherwise(value)
    return value


def _is_met(choice: Choice) -> Column:
    return F.lit(True) if choice.condition is None else F.coalesce(F.expr(choice.condition), F.lit(False))


def _of(alias: str, name: str) -> Column:
    return F.col(".".join(f"`{part.replace('`', '``')}`" for part in (alias, name)))
