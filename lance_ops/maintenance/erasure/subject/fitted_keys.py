"""Compare keys with a column that stores another type of the same family: numbers, texts, moments, and so on.

`fitted` returns the keys in the column's type. A key is dropped only because no value of that type equals it. Numbers
are compared exactly. A decimal and a float are also equal if a cast turns each into the other, as 0.10 and 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.arrow import is_number, is_text

__all__ = ["fitted"]

Number: TypeAlias = int | float | Decimal

_FAMILIES: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "numbers": (is_number,),
    "texts": (is_text,),
    "bytes": (pt.is_binary, pt.is_large_binary, pt.is_fixed_size_binary),
    "days": (pt.is_date,),
    "moments": (lambda kind: pt.is_timestamp(kind) and kind.tz is None,),
    "moments of a time zone": (lambda kind: pt.is_timestamp(kind) and kind.tz is not None,),
    "times of day": (pt.is_time,),
    "durations": (pt.is_duration,),
}
"""The types that are compared, of those in which values are computed.

A day and a moment are of two families: a cast of a moment loses its time.
"""

_WHOLE_DECIMALS = {32: pa.decimal32, 64: pa.decimal64, 128: pa.decimal128, 256: pa.decimal256}
"""By their widths in bits. Python's decimals become numbers of these types whatever the scale of the column is."""

_VALUES_AT_ONCE = 1 << 16


def fitted(values: pa.Array, kind: pa.DataType) -> tuple[pa.Array, np.ndarray]:
    """Return values in another type, and which of them it holds; the others are any value. Both types are computed in.

    Raises `ArrowNotImplementedError` for types that cannot be compared, as Arrow does for a cast that it does not have.
    """
    given = values.type
    if given == kind:
        return values, np.ones(len(values), np.bool_)
    if _family(given) != _family(kind):
        raise pa.ArrowNotImplementedError(f"{given} and {kind} are of two families")
    if not _is_number(kind):
        found = _cast(values, kind)
        return found, _mask(pc.equal(values, _cast(found, given)))
    if pt.is_floating(given) and pt.is_floating(kind):
        found = values.cast(kind, safe=False)
        widest = values.cast(pa.float64()), found.cast(pa.float64())
        return found, _mask(pc.or_(pc.equal(*widest), pc.and_(*map(pc.is_nan, widest))))
    found = _fitted_numbers(values, kind)
    return found, _mask(found.is_valid())


def _is_number(kind: pa.DataType) -> bool:
    return _family(kind) == "numbers"


def _family(kind: pa.DataType) -> object:
    """Return what stands for the types whose values can be compared; a type that has no kin stands for itself."""
    return next((family for family, has in _FAMILIES.items() if any(test(kind) for test in has)), kind)


def _mask(found: pa.Array) -> np.ndarray:
    held: np.ndarray = found.fill_null(False).to_numpy(zero_copy_only=False)
    return held


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast each value; one that the type cannot hold becomes null, or another value."""
    try:
        return values.cast(kind, safe=False)
    except pa.ArrowInvalid:
        return pa.concat_arrays([_cast_one(values.slice(at, 1), kind) for at in range(len(values))])


def _cast_one(value: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return value.cast(kind, safe=False)
    except pa.ArrowInvalid:
        return pa.nulls(1, kind)


def _fitted_numbers(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the numbers in another type, and null for those that it cannot hold.

    A safe cast of Arrow also refuses numbers that fit: integers in a decimal of few digits, and large integers in a
    float. Python then compares value by value.
    """
    if _changes_no_value(values.type, kind):
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return values.cast(kind)
    numbers = _WHOLE_DECIMALS[kind.bit_width](kind.precision, 0) if pt.is_decimal(kind) else kind
    parts = [
        pa.array([_fitted_number(value, values.type, kind) for value in part.to_pylist()], numbers)
        for part in (values.slice(start, _VALUES_AT_ONCE) for start in range(0, len(values), _VALUES_AT_ONCE))
    ]
    found = pa.concat_arrays([pa.nulls(0, numbers), *parts])
    return found if numbers == kind else pa.Array.from_buffers(kind, len(found), found.buffers())


def _changes_no_value(given: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether a safe cast of Arrow keeps every number or is refused.

    It rounds between floats and decimals, and digits of a decimal that overflow may be lost.
    """
    if pt.is_decimal(given) and pt.is_decimal(kind):
        more = kind.scale - given.scale
        return bool(0 <= more <= kind.precision - given.precision)
    return bool(not pt.is_decimal(given) and (pt.is_integer(given) or pt.is_integer(kind)))


def _fitted_number(value: Number | None, given: pa.DataType, kind: pa.DataType) -> Number | None:
    """Return the number of the type `kind` that equals one of the type `given`; None if there is none.

    A decimal is returned as its number of least units.
    """
    if value is None or not math.isfinite(value):
        return None  # of the types that differ, only a float can be infinite, and the other one is no float
    exact = Fraction(value)
    if pt.is_integer(kind):
        return exact.numerator if exact.denominator == 1 and _is_within(exact.numerator, kind) else None
    if pt.is_decimal(kind):
        units = round(exact * _units(kind))
        near = Fraction(units) / _units(kind)
        if abs(units) >= 10**kind.precision:
            return None
        if near != exact and not (pt.is_floating(given) and _nearest_float(near, given) == value):
            return None
        return Decimal(units)
    nearest = _nearest_float(exact, kind)
    if not math.isfinite(nearest):
        return None
    same = Fraction(nearest)
    if same != exact and pt.is_decimal(given):
        same = Fraction(round(same * _units(given))) / _units(given)
    return nearest if same == exact else None


def _is_within(number: int, kind: pa.DataType) -> bool:
    bits: int = kind.bit_width
    least, end = (0, 1 << bits) if pt.is_unsigned_integer(kind) else (-(1 << bits - 1), 1 << bits - 1)
    return least <= number < end


def _units(kind: pa.DataType) -> Fraction:
    """Return how many of a decimal's least units make one."""
    scale: int = kind.scale
    return Fraction(10) ** scale


def _nearest_float(number: Fraction, kind: pa.DataType) -> float:
    """Return the nearest float of a type; infinity for a number beyond all of them."""
    nearest = float(number)  # a decimal of at most 76 digits is never beyond a double
    if kind == pa.float64():
        return nearest
    with np.errstate(over="ignore"):
        return float(np.float32(nearest))
