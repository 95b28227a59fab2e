"""Convert a literal to the type of the value that it is compared with, without changing the result.

Numbers and instants are compared exactly. A type's values are whole numbers of steps, such as microseconds. A literal
on a step becomes that value. For a literal between two steps, or outside the type's range, the comparison becomes one
that is equivalent for all values of the type. A literal that is compared with floats is rounded, as SQL engines do.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import is_number, is_text, scalar
from lance_ops.core.errors import InvalidFilter
from lance_ops.core.predicate.binding.instants import Instant, parse_instant, parse_time
from lance_ops.core.predicate.tree import (
    NANOSECONDS,
    UNKNOWN,
    Compare,
    CompareOp,
    Expression,
    IsNull,
    Literal,
    Not,
    PointNumber,
    Predicate,
    all_of,
    any_of,
)
from lance_ops.core.predicate.types import is_binary
from lance_ops.core.records import dataclass

__all__ = ["compare_with_literal", "number_literal", "same_for_all"]

_MOST_DIGITS = 100  # more than a decimal has before or after its point
_NANOSECONDS_A_DAY = 86_400 * 10**9


def compare_with_literal(op: CompareOp, operand: Expression, literal: Literal) -> Predicate:
    """Compare with the literal converted to the operand's type; raise `InvalidFilter` if the types do not compare."""
    value, kind = literal.value, operand.type
    if not value.is_valid:
        return UNKNOWN
    if value.type == kind and not pa.types.is_float32(kind):
        return Compare(op, operand, literal)
    if pa.types.is_floating(kind) and is_number(value.type):
        return Compare(op, operand, Literal(_rounded(value, operand)))
    if (is_text(kind) and is_text(value.type)) or (is_binary(kind) and is_binary(value.type)):
        return _compare_bytes(op, operand, literal)
    steps, position = _steps_of(kind), _position(value, kind)
    if steps is None or position is None:
        raise InvalidFilter(
            f"{operand.to_sql()} is {kind} and cannot be compared with {literal.to_sql()}, which is {value.type}"
        )
    return _compare_at(
        op, operand, steps, position * steps.steps_per_unit if isinstance(position, Fraction) else position
    )


def same_for_all(operand: Expression, answer: bool) -> Predicate:
    """Return a condition with one answer for every value, and unknown for null."""
    return any_of(Not(IsNull(operand)), UNKNOWN) if answer else all_of(IsNull(operand), UNKNOWN)


def number_literal(text: str) -> Literal:
    """Parse a number in SQL: as int64 or uint64 if whole, else as an exact decimal, else as the nearest double."""
    exact = Decimal(text)
    if exact == exact.to_integral_value() and "." not in text and "e" not in text.lower() and -(2**63) <= exact < 2**64:
        return Literal(scalar(int(exact), pa.int64() if exact < 2**63 else pa.uint64()))
    decimal = _exact_decimal(exact)
    return Literal(scalar(float(exact))) if decimal is None else PointNumber(decimal)


def _exact_decimal(number: Decimal) -> pa.Scalar | None:
    """Return a decimal number; None for more than 76 digits."""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        return None
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > 76:
        return None
    kind = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    return scalar(number, kind)


@dataclass(frozen=True)
class _Steps:
    """The values of a type as whole numbers of steps from `lowest` to `highest`.

    A unit, which is 1 for numbers and a nanosecond for times, has `steps_per_unit` steps.
    """

    lowest: int
    highest: int
    steps_per_unit: Fraction = Fraction(1)


def _steps_of(kind: pa.DataType) -> _Steps | None:
    if pa.types.is_integer(kind):
        bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
        return _Steps(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else _Steps(0, 2**bits - 1)
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        return _Steps(-most, most, Fraction(10) ** kind.scale)
    if pa.types.is_date(kind):
        bits = 31 if pa.types.is_date32(kind) else 63 - 27  # date64 counts milliseconds, 2**26.4 of them a day
        return _Steps(-(2**bits), 2**bits - 1, Fraction(1, _NANOSECONDS_A_DAY))
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        bits = 31 if pa.types.is_time32(kind) else 63
        return _Steps(-(2**bits), 2**bits - 1, Fraction(1, NANOSECONDS[kind.unit]))
    return None


def _position(value: pa.Scalar, kind: pa.DataType) -> Fraction | float | None:
    """Return a value in units (or an infinity, or NaN); None if it does not compare with the type."""
    source = value.type
    if is_number(source) and is_number(kind):
        number = value.as_py()
        if isinstance(number, float):
            return Fraction(Decimal(repr(number))) if abs(number) < float("inf") else number
        return Fraction(number)
    if is_text(source) and pa.types.is_decimal(kind):
        return _position_of_text(value.as_py())
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = getattr(kind, "tz", None)
        instant = _instant(value, zone)
        return None if instant is None else _position_of_instant(instant, zone)
    if pa.types.is_time(kind):
        nanoseconds = parse_time(value.as_py()) if is_text(source) else _ticks(value, pa.types.is_time(source))
        return None if nanoseconds is None else Fraction(nanoseconds)
    if pa.types.is_duration(kind):
        length = _ticks(value, pa.types.is_duration(source))
        return None if length is None else Fraction(length)
    return None


def _position_of_text(text: str) -> Fraction | float | None:
    try:
        number = Decimal(text.strip())
        if number.is_finite() and abs(number.adjusted()) > _MOST_DIGITS:
            return _beyond_digits(number)
        return Fraction(number)
    except (ArithmeticError, ValueError):  # not a number; NaN or an infinity
        return None


def _beyond_digits(number: Decimal) -> Fraction | float:
    """Return a position that compares with every decimal as the number does.

    The exact fraction of 1e999999999 has a billion digits.
    """
    if not number:
        return Fraction(0)
    sign = -1 if number < 0 else 1
    return sign * float("inf") if number.adjusted() > 0 else Fraction(sign, 10**_MOST_DIGITS)


def _instant(value: pa.Scalar, zone: str | None) -> Instant | None:
    source = value.type
    if is_text(source):
        return parse_instant(value.as_py())
    if pa.types.is_date(source):
        days = value.value if pa.types.is_date32(source) else value.value // 86_400_000
        # As in the reference, a date is the midnight of UTC for a column with a zone, and of any clock for the others.
        return Instant(days * _NANOSECONDS_A_DAY, in_utc=zone is not None)
    if pa.types.is_timestamp(source):
        return Instant(value.value * NANOSECONDS[source.unit], source.tz is not None)
    return None


def _position_of_instant(instant: Instant, zone: str | None) -> Fraction | None:
    if zone is None:
        return None if instant.in_utc else Fraction(instant.nanoseconds)
    return Fraction(instant.nanoseconds if instant.in_utc else instant.wall_time_in(zone))


def _ticks(value: pa.Scalar, same_family: bool) -> int | None:
    return value.value * NANOSECONDS[value.type.unit] if same_family else None


def _compare_at(op: CompareOp, operand: Expression, steps: _Steps, position: Fraction | float) -> Predicate:
    if position != position or position > steps.highest:
        return _compare_beyond(op, operand, above=True)
    if position < steps.lowest:
        return _compare_beyond(op, operand, above=False)
    step = floor(position)
    if step == position:
        return Compare(op, operand, _literal_at(step, operand.type))
    match op:
        case CompareOp.EQ | CompareOp.NE:
            return same_for_all(operand, op is CompareOp.NE)
        case CompareOp.LT | CompareOp.LE:
            return Compare(CompareOp.LE, operand, _literal_at(step, operand.type))
        case CompareOp.GT | CompareOp.GE:
            return Compare(CompareOp.GT, operand, _literal_at(step, operand.type))


def _compare_beyond(op: CompareOp, operand: Expression, above: bool) -> Predicate:
    """Compare with a literal above (or below) all values of the type."""
    always = (CompareOp.NE, CompareOp.LT, CompareOp.LE) if above else (CompareOp.NE, CompareOp.GT, CompareOp.GE)
    return same_for_all(operand, op in always)


def _literal_at(step: int, kind: pa.DataType) -> Literal:
    value: Any = step
    if pa.types.is_decimal(kind):
        value = Decimal(f"{step}E{-kind.scale}")  # scaleb would round to the context's 28 digits
    elif pa.types.is_date64(kind):
        value = step * 86_400_000
    return Literal(scalar(value, kind))


def _rounded(value: pa.Scalar, operand: Expression) -> pa.Scalar:
    """Round a number to the operand's float type; half floats are compared as singles but hold fewer values."""
    number = float(value.as_py())
    with np.errstate(over="ignore"):
        if pa.types.is_float16(operand.stored_type):
            number = float(np.float16(number))
        return scalar(float(np.float32(number)) if pa.types.is_float32(operand.type) else number, operand.type)


def _compare_bytes(op: CompareOp, operand: Expression, literal: Literal) -> Predicate:
    kind, plain = operand.type, literal.value.as_py()
    if pa.types.is_fixed_size_binary(kind) and len(plain) != kind.byte_width:
        # The type holds values of one width only, so a literal of another width stays variable-width binary.
        return Compare(op, operand, Literal(scalar(plain, pa.binary())))
    return Compare(op, operand, Literal(scalar(plain, kind)))
