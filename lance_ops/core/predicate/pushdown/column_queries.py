"""Convert a predicate on one column into a query: values, a range, null or not null.

Values are in the column's compute type (`Column.type`) and ordered as everywhere in this package: NaN above all numbers
and equal to itself, -0.0 equal to 0.0. A query selects the rows for which its predicate is true; only `Nulls` selects
rows whose value is null.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, TypeAlias

import pyarrow as pa

from lance_ops.core.arrow import array_of_scalars, scalar
from lance_ops.core.predicate.tree import (
    And,
    BooleanValue,
    Column,
    Compare,
    CompareOp,
    In,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
    order_key,
)
from lance_ops.core.records import dataclass

__all__ = ["Bound", "ColumnQuery", "Equals", "NotNull", "Nulls", "Range", "column_query"]


@dataclass(frozen=True)
class Bound:
    """One end of a range."""

    value: pa.Scalar
    inclusive: bool

    def admits(self, value: pa.Scalar, above: bool) -> bool:
        """Whether a value lies on the inner side, which is above for a lower end and below for an upper one."""
        if _same(value, self.value):
            return self.inclusive
        return _less(self.value, value) if above else _less(value, self.value)


@dataclass(frozen=True)
class Equals:
    """The rows whose value is one of these, each once, in order; there may be none."""

    column: Column
    values: pa.Array = field(hash=False)


@dataclass(frozen=True)
class Range:
    """The rows whose value lies between two ends; an end that is None is open. Without an upper end NaN is within."""

    column: Column
    lower: Bound | None = None
    upper: Bound | None = None

    def admits(self, value: pa.Scalar) -> bool:
        """Whether a value lies within."""
        above = self.lower is None or self.lower.admits(value, above=True)
        return above and (self.upper is None or self.upper.admits(value, above=False))


@dataclass(frozen=True)
class Nulls:
    """The rows whose value is null."""

    column: Column


@dataclass(frozen=True)
class NotNull:
    """The rows whose value is not null."""

    column: Column


ColumnQuery: TypeAlias = Equals | Range | Nulls | NotNull


def column_query(predicate: Predicate) -> ColumnQuery | None:
    """Return the query that a predicate is equivalent to; None if it reads several columns or has no such form."""
    match predicate:
        case Compare(op, Column() as column, Literal(value)) if value.is_valid and value.type == column.type:
            return _comparison(op, column, value)
        case In(Column() as column, values, _):  # a null in the list makes no row true
            return Equals(column, values)
        case IsNull(Column() as column):
            return Nulls(column)
        case Not(IsNull(Column() as column)):
            return NotNull(column)
        case StartsWith(Column() as column, prefix):
            return _prefix(column, prefix)
        case BooleanValue(Column() as column):
            return Equals(column, array_of_scalars([scalar(True)], pa.bool_()))
        case Not(BooleanValue(Column() as column)):
            return Equals(column, array_of_scalars([scalar(False)], pa.bool_()))
        case IsTrue(part):
            return column_query(part)
        case And(parts):
            return _all(parts)
        case Or(parts):
            return _any(parts)
        case _:
            return None


def _comparison(op: CompareOp, column: Column, value: pa.Scalar) -> ColumnQuery | None:
    match op:
        case CompareOp.EQ:
            return Equals(column, array_of_scalars([value], column.type))
        case CompareOp.NE:
            return None
        case CompareOp.LT | CompareOp.LE:
            return Range(column, upper=Bound(value, op is CompareOp.LE))
        case CompareOp.GT | CompareOp.GE:
            return Range(column, lower=Bound(value, op is CompareOp.GE))


def _prefix(column: Column, prefix: str) -> ColumnQuery | None:
    if not prefix:
        return NotNull(column)
    lower = Bound(scalar(prefix, column.type), inclusive=True)
    end = _text_successor(prefix)
    return Range(column, lower, Bound(scalar(end, column.type), inclusive=False) if end is not None else None)


def _text_successor(prefix: str) -> str | None:
    """Return the least text above all texts with the prefix. Text orders by code point, as its UTF-8 bytes do."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(
        0xE000 if following == 0xD800 else following
    )  # the code points between are surrogates, which text cannot hold


def _all(parts: Iterable[Predicate]) -> ColumnQuery | None:
    """Return the query for the rows that all parts select; None unless all are queries on one column."""
    queries = [column_query(part) for part in parts]
    result = queries[0]
    for query in queries[1:]:
        if result is None or query is None or result.column != query.column:
            return None
        result = _intersection(result, query)
    return result


def _any(parts: Iterable[Predicate]) -> ColumnQuery | None:
    """Return the query for the rows that any part selects; None unless all select values of one column."""
    queries = [column_query(part) for part in parts]
    wanted = [query for query in queries if isinstance(query, Equals)]
    column = wanted[0].column if wanted else None
    if column is None or len(wanted) < len(queries) or any(query.column != column for query in wanted):
        return None
    return Equals(column, _ordered([value for query in wanted for value in query.values], column.type))


def _intersection(left: ColumnQuery, right: ColumnQuery) -> ColumnQuery | None:
    """Return the query for the rows in both."""
    match left, right:
        case (NotNull(), Equals() | Range() | NotNull()):
            return right
        case (Equals() | Range(), NotNull()) | (Nulls(), Nulls()):
            return left
        case (Equals(column, values), Range() | Equals()):
            return Equals(column, _keep(values, right))
        case (Range(column), Equals(_, values)):
            return Equals(column, _keep(values, left))
        case (Range(column), Range()):
            return Range(column, _tighter(left.lower, right.lower, True), _tighter(left.upper, right.upper, False))
        case _:  # null and not null at once is rare, so the scan answers it
            return None


def _keep(values: pa.Array, query: Equals | Range) -> pa.Array:
    if isinstance(query, Range):
        kept = [value for value in values if query.admits(value)]
    else:
        wanted = {_sort_key(other) for other in query.values}
        kept = [value for value in values if _sort_key(value) in wanted]
    return array_of_scalars(kept, values.type)


def _tighter(left: Bound | None, right: Bound | None, above: bool) -> Bound | None:
    if left is None or right is None:
        return left or right
    if _same(left.value, right.value):
        return left if not left.inclusive else right
    return left if right.admits(left.value, above) else right


def _ordered(values: list[pa.Scalar], value_type: pa.DataType) -> pa.Array:
    unique = {_sort_key(value): value for value in values}
    return array_of_scalars([unique[key] for key in sorted(unique)], value_type)


def _sort_key(value: pa.Scalar) -> tuple[bool, Any]:
    key = order_key(value)
    return (True, 0) if key != key else (False, key)


def _same(left: pa.Scalar, right: pa.Scalar) -> bool:
    return _sort_key(left) == _sort_key(right)


def _less(left: pa.Scalar, right: pa.Scalar) -> bool:
    return _sort_key(left) < _sort_key(right)
