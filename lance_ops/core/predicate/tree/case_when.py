"""The CASE expression: the first branch whose condition is true gives a row's value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import InvalidFilter
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.predicate.tree.nodes import Expression, Predicate, Values
from lance_ops.core.predicate.tree.values import PointNumber
from lance_ops.core.predicate.types import common_type
from lance_ops.core.records import dataclass

__all__ = ["Case", "case"]


@dataclass(frozen=True)
class Case(Expression):
    """Conditions with their values, tried in order; a row for which no condition is true gets `otherwise`.

    A value is computed only for the rows that get it, so that `CASE WHEN b != 0 THEN a / b END` never divides by zero.
    """

    branches: tuple[tuple[Predicate, Expression], ...]
    otherwise: Expression
    result_type: pa.DataType

    @property
    def type(self) -> pa.DataType:
        return self.result_type

    @property
    def children(self) -> tuple[Expression, ...]:
        return (*(part for branch in self.branches for part in branch), self.otherwise)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        parts: list[pa.Array] = []
        places: list[Int64Array] = []
        rest, left = batch, np.arange(batch.num_rows)
        for condition, value in self.branches:
            taken = condition.true_mask(rest)
            if taken.any():
                parts.append(self._values(value, rest.filter(pa.array(taken))))
                places.append(left[taken])
                rest, left = rest.filter(pa.array(~taken)), left[~taken]
        if len(left) or not parts:
            parts.append(self._values(self.otherwise, rest))
            places.append(left)
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(places))))

    def to_sql(self) -> str:
        branches = "".join(f" WHEN {when.to_sql()} THEN {then.to_sql()}" for when, then in self.branches)
        return f"CASE{branches} ELSE {self.otherwise.to_sql()} END"

    def _values(self, value: Expression, rows: pa.RecordBatch) -> pa.Array:
        values = value.evaluate_as(rows, self.type)
        return pa.repeat(values, rows.num_rows) if isinstance(values, pa.Scalar) else values


def case(branches: Sequence[tuple[Predicate, Expression]], otherwise: Expression) -> Expression:
    """Return a `Case` in the values' common type; raises `InvalidFilter` if they have none."""
    values = [value for _, value in branches] + [otherwise]
    given = [value.type for value in values if not isinstance(value, PointNumber)]
    exact = any(map(pa.types.is_decimal, given)) and not any(map(pa.types.is_floating, given))
    types = [_type_of(value, exact) for value in values if not pa.types.is_null(value.type)]
    shared = reduce(_meet, types, None)
    return Case(tuple(branches), otherwise, shared or pa.null())


def _type_of(value: Expression, exact: bool) -> pa.DataType:
    """Return a value's type; a number with a point is a double unless the values are computed exactly."""
    return value.stored_type if isinstance(value, PointNumber) and not exact else value.type


def _meet(known: pa.DataType | None, other: pa.DataType) -> pa.DataType:
    shared = other if known is None else common_type(known, other)
    if shared is None:
        raise InvalidFilter(f"CASE has values of {known} and of {other}, without a common type: cast one of them")
    return shared
