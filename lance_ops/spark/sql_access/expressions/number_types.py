"""The types that Spark gives to numbers in an expression, and to what is computed of them.

This library computes with other types: it adds a `smallint` and a literal in 16 bits, and a `bigint` and `0.1` as
doubles. So an expression is written with casts to Spark's types. Rules are those of Spark's `TypeCoercion`,
`AnsiTypeCoercion` and `DecimalPrecisionTypeCoercion`.

    integers                       the longer type of both; a literal is INT, or BIGINT if it is too long for 32 bits
    an integer with a decimal      decimal; INT has 10 digits, BIGINT 20, and a literal those that are written
    float with a decimal; double   double
    float with an integer          double in a session with ANSI mode, float in others

Spark rounds decimals whose type would need more than 38 digits; `UnsupportedFeature` refuses them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import UnsupportedFeature

__all__ = ["common_type", "computed_type", "is_number", "literal_type", "name_of_type", "type_in_spark"]

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""The digits of an integer as a decimal, by its type; a longer type has more."""

_NAMES = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
}
_WIDENED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}
_MAX_DIGITS = 38


def type_in_spark(kind: pa.DataType) -> pa.DataType:
    """Return the type that Spark sees of a column; other types than numbers stay as they are."""
    if pt.is_dictionary(kind):
        kind = kind.value_type
    if pt.is_decimal(kind):
        return pa.decimal128(min(kind.precision, _MAX_DIGITS), kind.scale)
    return _WIDENED.get(kind, kind)


def is_number(kind: pa.DataType | None) -> bool:
    """Return whether values of a type of Spark are numbers."""
    return kind is not None and (kind in _NAMES or pt.is_decimal128(kind))


def name_of_type(kind: pa.DataType) -> str:
    """Return the name of a type of numbers in this library's SQL."""
    return _NAMES.get(kind) or f"DECIMAL({kind.precision}, {kind.scale})"


def literal_type(text: str) -> pa.DataType:
    """Return the type of a number as it is written; raise `UnsupportedFeature` for one of over 38 digits."""
    if "e" in text.lower():
        return pa.float64()
    whole, _, fraction = text.partition(".")
    if "." not in text and int(whole) < 1 << 63:
        return pa.int32() if int(whole) < 1 << 31 else pa.int64()
    return _decimal(len(whole.lstrip("0")) + len(fraction), len(fraction), text)


def computed_type(
    sign: str, kinds: tuple[pa.DataType, pa.DataType], literals: tuple[str | None, str | None], *, is_ansi: bool
) -> pa.DataType:
    """Return the type of `+`, `-` or `*` of two numbers; `literals` are the texts of those that are whole literals."""
    one, other = kinds
    if not any(map(pt.is_decimal128, kinds)) or any(map(pt.is_floating, kinds)):
        return common_type(kinds, is_ansi=is_ansi)
    (digits, scale), (other_digits, other_scale) = (
        (len(text.lstrip("0")) or 1, 0) if text is not None and pt.is_integer(kind) else _digits_and_scale(kind)
        for kind, text in ((one, literals[0]), (other, literals[1]))
    )
    if sign == "*":
        return _decimal(digits + other_digits + 1, scale + other_scale, sign)
    most = max(scale, other_scale)
    return _decimal(max(digits - scale, other_digits - other_scale) + most + 1, most, sign)


def common_type(kinds: Iterable[pa.DataType], *, is_ansi: bool) -> pa.DataType:
    """Return the type in which Spark compares numbers of these types, and to which it casts the branches of a CASE."""

    def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
        both = (one, other)
        if one == other:
            return one
        if pa.float64() in both:
            return pa.float64()
        if pa.float32() in both:
            return pa.float64() if is_ansi or any(map(pt.is_decimal128, both)) else pa.float32()
        if all(map(pt.is_integer, both)):
            return max(both, key=_DIGITS.__getitem__)
        (digits, scale), (other_digits, other_scale) = map(_digits_and_scale, both)
        most = max(scale, other_scale)
        return _decimal(max(digits - scale, other_digits - other_scale) + most, most, "a choice")

    return reduce(wider, kinds)


def _digits_and_scale(kind: pa.DataType) -> tuple[int, int]:
    return (_DIGITS[kind], 0) if kind in _DIGITS else (kind.precision, kind.scale)


def _decimal(digits: int, scale: int, what: str) -> pa.DataType:
    if digits > _MAX_DIGITS:
        raise UnsupportedFeature(
            f"{what} of decimals that needs more than {_MAX_DIGITS} digits, of which Spark rounds some, in a change of "
            "a table (cast the operands to shorter types, in the source of a MERGE)"
        )
    return pa.decimal128(max(digits, scale, 1), scale)
