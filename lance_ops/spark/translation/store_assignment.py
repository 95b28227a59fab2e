"""Assign values to columns of another type as Spark does, in Arrow: refuse what it refuses, round as it rounds.

Arrow casts more pairs of types than Spark assigns, and some of them to other values. It counts a number as microseconds
since 1970 where Spark counts seconds, reads `0x10` as a number, and spells moments and doubles in its own way.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.arrow import is_number, is_text_or_view
from lance_ops.core.errors import SchemaMismatch

__all__ = ["check_assignable", "decimals_of_floats", "rounded", "why_not_assigned"]

_NUMBER, _MOMENT, _TIME, _INTERVAL, _TEXT, _BYTES = "numbers", "moments", "times", "intervals", "texts", "bytes"
_DATE, _TIMESTAMP = "dates", "timestamps"

_WAYS: dict[tuple[str | None, str | None], str] = {
    (_NUMBER, _DATE): "date_from_unix_date(…) takes days since 1970",
    (_NUMBER, _TIMESTAMP): "CAST(… AS TIMESTAMP) takes seconds since 1970, timestamp_micros(…) microseconds",
    (_DATE, _NUMBER): "unix_date(…) gives days since 1970",
    (_TIMESTAMP, _NUMBER): "CAST(… AS BIGINT) gives seconds since 1970, unix_micros(…) microseconds",
}
"""What a query writes instead of an assignment from one kind of value to another."""

_MOST_SPELLED_ALIKE = 6
"""The most digits after the point for which no decimal is spelled with an exponent."""

_DIGITS_OF_DOUBLE = 17
_MOST_DIGITS = 76
_HEXADECIMAL = "^0[xX]"
_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896
"""The years 0 to 9999, as days since 1970: Spark spells others with a sign."""


def check_assignable(array: pa.Array, wanted: pa.DataType, path: str) -> None:
    """Raise `SchemaMismatch` if Arrow would cast values of the column `path` to others than Spark assigns."""
    given, wanted = _plain(array.type), _plain(wanted)
    kinds = _kind(given), _kind(wanted)
    if None in kinds or kinds[0] == kinds[1]:
        return
    if pt.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kinds[1] == _TEXT:
        if not _is_spelled_alike(array, given):
            raise _refusal(given, wanted, path, "CAST(… AS STRING)")
    elif kinds == (_TEXT, _NUMBER):
        if pt.is_integer(wanted) and pc.any(pc.match_substring_regex(array, _HEXADECIMAL)).as_py():
            raise _refusal(given, wanted, path, "Spark reads no hexadecimal text as a number")
    elif reason := why_not_assigned(given, wanted):
        raise _refusal(given, wanted, path, reason)


def why_not_assigned(given: pa.DataType, wanted: pa.DataType) -> str:
    """Return why Spark assigns no value of one type to a column of another, and what to write; "" if it assigns some.

    A text is assigned to any type, and any value to a text.
    """
    kinds = _kind(given), _kind(wanted)
    if None in kinds or kinds[0] == kinds[1] or _TEXT in kinds or kinds == (_MOMENT, _TIME):
        return ""
    names = _name(given), _name(wanted)
    way = _WAYS.get(names, "cast it to the type of the column")
    return f"Spark assigns no {names[0]} to a column of {names[1]}; {way}"


def rounded(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Round numbers as Spark does before it casts them, so that the cast to `wanted` changes the type alone.

    Decimals are rounded half up, away from zero. Fractions of whole numbers are cut. Whole numbers become the nearest
    float. What is too large for `wanted` stays so.
    """
    given = array.type
    if wanted == pa.uint64() and (pt.is_decimal(given) or pt.is_floating(given)):
        wanted = pa.decimal128(20, 0)  # the type that Spark sees
        array = array if pt.is_decimal(given) else decimals_of_floats(array, wanted)
        given = array.type
    if pt.is_decimal(given) and pt.is_decimal(wanted):
        return _half_up(array, wanted.scale) if given.scale > wanted.scale else array
    if pt.is_integer(wanted) and (pt.is_decimal(given) or pt.is_floating(given)):
        return pc.trunc(array)
    if pt.is_integer(given) and pt.is_floating(wanted):
        return array.cast(pa.float32() if pt.is_float16(wanted) else wanted, safe=False)
    return array


def decimals_of_floats(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return floats as decimals with the scale of `wanted` and more digits, rounded half up as Spark rounds them.

    Spark rounds the shortest decimal fraction that reads as the double. Arrow's cast rounds the binary fraction, which
    may be less: 1.005 would become 1.00. Raises `ArrowInvalid` for infinity, for NaN, and for a value that is too long.
    """
    doubles = array.cast(pa.float64())
    vanish = pc.less(pc.abs(doubles), 10.0 ** -(wanted.scale + 1))
    texts = pc.if_else(vanish, 0.0, doubles).cast(pa.string())
    scale = min(wanted.scale + 1 + _DIGITS_OF_DOUBLE, _MOST_DIGITS)
    return _half_up(texts.cast(pa.decimal256(_MOST_DIGITS, scale)), wanted.scale)


def _half_up(decimals: pa.Array, scale: int) -> pa.Array:
    longer = pa.decimal256(min(decimals.type.precision + 1, _MOST_DIGITS), decimals.type.scale)
    return pc.round(decimals.cast(longer), scale, "half_towards_infinity")


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary or of an extension."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return kind.value_type if pt.is_dictionary(kind) else kind


def _kind(kind: pa.DataType) -> str | None:
    """Return what the values of a type are; None for nulls and for nested values."""
    if pt.is_boolean(kind) or is_number(kind):
        return _NUMBER
    if pt.is_temporal(kind):
        return _INTERVAL if pt.is_duration(kind) else _TIME if pt.is_time(kind) else _MOMENT
    if is_text_or_view(kind):
        return _TEXT
    is_bytes = pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind)
    return _BYTES if is_bytes or pt.is_fixed_size_binary(kind) else None


def _name(kind: pa.DataType) -> str | None:
    return _DATE if pt.is_date(kind) else _TIMESTAMP if pt.is_timestamp(kind) else _kind(kind)


def _is_spelled_alike(array: pa.Array, given: pa.DataType) -> bool:
    """Return whether Arrow writes values as text just as Spark does."""
    if pt.is_date(given):
        days = array.cast(pa.date32()).cast(pa.int32())
        return bool(pc.all(pc.and_(pc.less_equal(_FIRST_DAY, days), pc.less_equal(days, _LAST_DAY))).as_py())
    if pt.is_decimal(given):
        return bool(0 <= given.scale <= _MOST_SPELLED_ALIKE)
    return bool(pt.is_boolean(given) or pt.is_integer(given)) or _kind(given) == _BYTES


def _refusal(given: pa.DataType, wanted: pa.DataType, path: str, way: str) -> SchemaMismatch:
    return SchemaMismatch(f"column {path!r} is {given} and does not fit {wanted}: {way}")
