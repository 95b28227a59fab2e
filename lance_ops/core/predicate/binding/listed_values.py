"""Test whether a value is in a long list, written with `IN` or as equalities that `OR` joins.

One Arrow array holds the values of a long list. A literal for each value would take far more memory and time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import is_text
from lance_ops.core.predicate.binding import build
from lance_ops.core.predicate.binding.literal_coercion import same_for_all
from lance_ops.core.predicate.tree import Compare, CompareOp, Expression, In, Literal, Predicate, any_of
from lance_ops.core.records import dataclass

__all__ = ["ListedValues", "either", "is_listed"]

_LEAST_EQUALS = 8
"""At least this many comparisons of one value with `=` become one membership test."""


@dataclass(frozen=True)
class ListedValues:
    """Literals without nulls: as one array of int64, float64 or text, and as expressions, which are made on demand."""

    values: pa.Array
    literals: Callable[[], Sequence[Expression]]


def is_listed(operand: Expression, listed: ListedValues) -> Predicate:
    """Return the condition that a value is in a list: the one that `build.is_in` returns for the literals.

    The values are converted as an array if the operand is an integer, a float or text. Otherwise each literal is
    converted by itself.
    """
    fitting = None if isinstance(operand, Literal) else _converted(listed.values, operand)
    if fitting is None:
        return build.is_in(operand, listed.literals())
    unique = pc.unique(fitting)
    values = unique.take(pc.sort_indices(unique))
    if not len(values):
        return same_for_all(operand, False)
    if len(values) == 1:
        return Compare(CompareOp.EQ, operand, Literal(values[0]))
    return In(operand, values)


def either(conditions: Iterable[Predicate]) -> Predicate:
    """Join conditions by OR; at least `_LEAST_EQUALS` comparisons of one value with `=` become one membership test."""
    parts = list(conditions)
    equals: dict[Expression, list[Literal]] = {}
    for part in parts:
        match part:
            case Compare(CompareOp.EQ, operand, Literal() as literal) if literal.type == operand.type:
                equals.setdefault(operand, []).append(literal)
    joined = {operand: literals for operand, literals in equals.items() if len(literals) >= _LEAST_EQUALS}
    rest = [part for part in parts if not (isinstance(part, Compare) and _is_in(joined, part))]
    return any_of(*rest, *(build.is_in(operand, literals) for operand, literals in joined.items()))


def _is_in(joined: Mapping[Expression, list[Literal]], part: Compare) -> bool:
    is_equal = part.op is CompareOp.EQ and isinstance(part.right, Literal) and part.right.type == part.left.type
    return is_equal and part.left in joined


def _converted(values: pa.Array, operand: Expression) -> pa.Array | None:
    """Return the values that the operand's type can hold, in that type; None for a type that needs each literal."""
    kind = operand.type
    if is_text(values.type):
        return values.cast(kind) if is_text(kind) else None
    if pa.types.is_integer(values.type) and pa.types.is_integer(kind):
        return _within(values, kind)
    if pa.types.is_floating(kind):
        return _rounded(values, operand)
    return None


def _within(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Leave out the integers that the type cannot hold, which equal no value of it."""
    numbers: Any = values.to_numpy()
    limits = np.iinfo(kind.to_pandas_dtype())
    low, high = max(limits.min, -(2**63)), min(limits.max, 2**63 - 1)
    kept = numbers[(numbers >= low) & (numbers <= high)]
    return pa.array(kept.astype(kind.to_pandas_dtype()), kind)


def _rounded(values: pa.Array, operand: Expression) -> pa.Array:
    """Round numbers as `compare_with_literal` rounds each: to the float type that stores the operand."""
    numbers: Any = values.to_numpy().astype(np.float64)
    with np.errstate(over="ignore"):
        if pa.types.is_float16(operand.stored_type):
            numbers = numbers.astype(np.float16)
        numbers = numbers.astype(operand.type.to_pandas_dtype())
    return pa.array(numbers + numbers.dtype.type(0), operand.type)  # -0.0 becomes 0.0
