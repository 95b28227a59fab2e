"""Choose the type of a computed column as the reference does. Values may be computed in a wider type."""

from __future__ import annotations

import pyarrow as pa

from lance_ops.core.predicate.tree import Arithmetic, ArithmeticOp, Column, ComputedNumber, Expression, Literal, Minus
from lance_ops.core.predicate.types import exact_type, wider_integer

__all__ = ["result_type"]

_MAX_PRECISION = 38


def result_type(value: Expression) -> pa.DataType:
    """Return the Arrow type of the column that holds the values of an expression."""
    match value:
        case Arithmetic(_, Column() as column, Literal() as literal) if _holds(column.arrow_type, literal):
            return _arithmetic(value, column.arrow_type, column.arrow_type)
        case Arithmetic(_, Literal() as literal, Column() as column) if _holds(column.arrow_type, literal):
            return _arithmetic(value, column.arrow_type, column.arrow_type)
        case _:
            return _type_of(value)


def _type_of(value: Expression) -> pa.DataType:
    match value:
        case Minus(operand):
            return _type_of(operand)
        case Arithmetic(_, left, right):
            return _arithmetic(value, _type_of(left), _type_of(right))
        case Literal() if pa.types.is_uint64(value.type) and value.value.is_valid and value.value.as_py() < 2**63:
            return pa.int64()  # as it was written; it became unsigned beside an unsigned operand
        case _:
            return value.stored_type


def _arithmetic(value: Arithmetic, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of an operation on operands of these types."""
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        if pa.uint64() not in (left, right) or left == right or not _has_sign(left, right):
            return wider_integer(left, right)
        left, right = exact_type(pa.uint64()), exact_type(pa.uint64())
        if value.op is ArithmeticOp.REMAINDER:
            return left
    if pa.types.is_floating(left) and left == right:
        return left
    if not pa.types.is_decimal(value.type) or not all(map(_is_exact, (left, right))):
        return value.type
    sides = [exact_type(side) for side in (left, right)]
    if value.op is ArithmeticOp.MULTIPLY:
        scale, precision = sum(side.scale for side in sides), sum(side.precision for side in sides) + 1
    else:
        scale = max(side.scale for side in sides)
        precision = max(side.precision - side.scale for side in sides) + scale + 1
    return pa.decimal128(min(precision, _MAX_PRECISION), scale) if scale <= _MAX_PRECISION else value.type


def _has_sign(left: pa.DataType, right: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(left) or pa.types.is_signed_integer(right))


def _is_exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _holds(kind: pa.DataType, literal: Literal) -> bool:
    """Return whether the reference gives a literal beside a column the column's type."""
    if isinstance(literal, ComputedNumber):
        return False
    is_whole = bool(pa.types.is_integer(literal.type))
    return (is_whole and _is_exact(kind)) or bool(pa.types.is_floating(kind))
