"""Arithmetic on numbers: sums, differences, products, quotients, remainders and negatives.

Integers are computed in 64 bits. A result that these cannot hold is an error: it never wraps around. With an unsigned
64-bit operand, integers are computed as decimals, which hold every result.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import scalar
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.predicate.tree.nodes import Expression, Values
from lance_ops.core.predicate.types import exact_type
from lance_ops.core.records import dataclass

__all__ = ["Arithmetic", "ArithmeticOp", "Minus", "arithmetic_type"]

_MAX_PRECISION = 38  # of decimal128
_LEAST = -(2**63)


class ArithmeticOp(StrEnum):
    """The operators between numbers; the result of `%` has the sign of the left operand."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"


@dataclass(frozen=True)
class Arithmetic(Expression):
    """An operation on two numbers; `arithmetic_type` says in which type.

    A result of integers that the type cannot hold is an error. A division of integers drops the fraction.
    """

    op: ArithmeticOp
    left: Expression
    right: Expression
    result_type: pa.DataType

    @property
    def type(self) -> pa.DataType:
        return self.result_type

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        targets = _operand_types(self.op, self.left.type, self.right.type)
        sides = [side.evaluate_as(batch, target) for side, target in zip(self.children, targets, strict=True)]
        try:
            return _compute(self.op, *sides)
        except pa.ArrowInvalid as error:
            if "overflow" not in str(error):
                raise
            raise pa.ArrowInvalid(f"overflow of {self.type}: cast an operand to DECIMAL(38, 0) or DOUBLE") from error

    def to_sql(self) -> str:
        return f"({self.left.to_operand_sql()} {self.op} {self.right.to_operand_sql()})"


@dataclass(frozen=True)
class Minus(Expression):
    """The negative of a number; unsigned 64-bit integers are computed as decimals, other integers in 64 bits."""

    operand: Expression

    @property
    def type(self) -> pa.DataType:
        given = self.operand.type  # asked once: each level of nested negatives asks the next
        if pa.types.is_uint64(given):
            return exact_type(given)
        return pa.int64() if pa.types.is_integer(given) else given

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return pc.negate_checked(self.operand.evaluate_as(batch, self.type))

    def to_sql(self) -> str:
        return f"(- {self.operand.to_operand_sql()})"


def arithmetic_type(op: ArithmeticOp, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the result type for numeric operands: a float, a 64-bit integer, or a decimal that holds each result.

    Raises `UnsupportedFeature` for a division of decimals, and for a result of more than 76 digits.
    """
    has_decimal, has_float = (any(map(kind, (left, right))) for kind in (pa.types.is_decimal, pa.types.is_floating))
    if op in _DIVISIONS and has_decimal and not has_float:
        raise UnsupportedFeature(f"operator {op} on decimals in a filter (cast them to double)")
    try:
        empty = (pa.nulls(0, target) for target in _operand_types(op, left, right))
        return _compute(op, *empty).type
    except pa.ArrowInvalid as error:
        raise UnsupportedFeature(f"{left} {op} {right} in a filter: {error}") from error


_DIVISIONS = (ArithmeticOp.DIVIDE, ArithmeticOp.REMAINDER)


def _operand_types(op: ArithmeticOp, left: pa.DataType, right: pa.DataType) -> tuple[pa.DataType, pa.DataType]:
    """Return the types in which the operands are computed."""
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        is_double = any(pa.types.is_float64(side) or pa.types.is_decimal(side) for side in (left, right))
        return (pa.float64(),) * 2 if is_double else (pa.float32(),) * 2
    if not (pa.types.is_decimal(left) or pa.types.is_decimal(right)):
        if pa.uint64() not in (left, right):
            return (pa.int64(), pa.int64())
        if op in _DIVISIONS:
            is_signed = pa.types.is_signed_integer(left) or pa.types.is_signed_integer(right)
            return (pa.decimal256(20, 0),) * 2 if is_signed else (pa.uint64(),) * 2
    exact = [exact_type(side) for side in (left, right)]
    if _precision(op, *exact) > _MAX_PRECISION:
        exact = [pa.decimal256(side.precision, side.scale) for side in exact]
    return exact[0], exact[1]


def _precision(op: ArithmeticOp, left: pa.DataType, right: pa.DataType) -> int:
    """Return the number of digits that a result of decimals may have."""
    if op is ArithmeticOp.MULTIPLY:
        return int(left.precision + right.precision + 1)
    whole = max(side.precision - side.scale for side in (left, right))
    return int(whole + max(left.scale, right.scale) + 1)


def _compute(op: ArithmeticOp, left: Values, right: Values) -> Values:
    overflows = not pa.types.is_floating(left.type)  # checked operations on doubles take three times as long
    match op:
        case ArithmeticOp.ADD:
            return (pc.add_checked if overflows else pc.add)(left, right)
        case ArithmeticOp.SUBTRACT:
            return (pc.subtract_checked if overflows else pc.subtract)(left, right)
        case ArithmeticOp.MULTIPLY:
            return (pc.multiply_checked if overflows else pc.multiply)(left, right)
        case ArithmeticOp.DIVIDE:
            return _quotient(left, right)
        case ArithmeticOp.REMAINDER:
            return _remainder(left, right)


def _quotient(left: Values, right: Values) -> Values:
    if pa.types.is_decimal(left.type):
        return _whole(pc.divide(left, right), left.type)
    return pc.divide(left, right) if pa.types.is_floating(left.type) else pc.divide_checked(left, right)


def _remainder(left: Values, right: Values) -> Values:
    if pa.types.is_floating(left.type):
        return _float_remainder(left, right)
    if pa.types.is_decimal(left.type):
        return _whole(pc.subtract(left, pc.multiply(right, _quotient(left, right))), left.type)
    if isinstance(left, pa.Array) and not left.null_count and isinstance(right, pa.Scalar) and right.is_valid:
        divisor = right.as_py()
        if divisor > 0:
            return pa.array(_remainders_of_one(left.to_numpy(), divisor))
    if pa.types.is_signed_integer(left.type) and pc.min(left).as_py() == _LEAST:
        # The quotient by -1 would overflow; the remainder is 0, as by 1.
        one = scalar(1, right.type)
        right = pc.if_else(pc.equal(right, scalar(-1, right.type)), one, right)
    return pc.subtract(left, pc.multiply(right, pc.divide(left, right)))


def _float_remainder(left: Values, right: Values) -> Values:
    """Return the remainder by `fmod`, which is exact; the formula for integers would round."""
    length = max((len(side) for side in (left, right) if isinstance(side, pa.Array)), default=None)
    numbers = [_as_numpy(side) for side in (left, right)]
    with np.errstate(all="ignore"):
        result = np.fmod(*numbers)
    unknown = pc.or_(pc.is_null(left), pc.is_null(right))
    values = scalar(float(result)) if length is None else pa.array(np.broadcast_to(result, length))
    return pc.cast(pc.if_else(unknown, scalar(None, pa.float64()), values), left.type)


def _whole(values: Values, target: pa.DataType) -> Values:
    """Drop the fractions of decimals."""
    return pc.cast(values, options=pc.CastOptions(target_type=target, allow_decimal_truncate=True))


def _remainders_of_one(numbers: Int64Array | Uint64Array, divisor: int) -> Int64Array | Uint64Array:
    """Return the remainders by one positive divisor, with the dividend's sign.

    For a single divisor numpy replaces division instructions by multiplications and shifts.
    """
    has_negatives = numbers.dtype == np.int64 and bool(len(numbers)) and bool(numbers.min() < 0)
    given = numbers if has_negatives else numbers.view(np.uint64)  # unsigned division takes half the time
    remainders = given // given.dtype.type(divisor)
    remainders *= given.dtype.type(divisor)
    np.subtract(given, remainders, out=remainders)  # floor remainders, not negative
    found: Any = remainders.view(numbers.dtype)
    if has_negatives:
        found[(numbers < 0) & (found > 0)] -= divisor
    return cast("Int64Array | Uint64Array", found)


def _as_numpy(values: Values) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    if isinstance(values, pa.Scalar):
        return np.asarray(values.as_py() if values.is_valid else np.nan, dtype=np.float64)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
