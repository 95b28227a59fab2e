"""The types in which predicates compute, and the conversion of values between them.

pyarrow cannot compare some Arrow types (views, half floats, dictionaries). Columns of such a type are converted without
loss to a type that it can compare.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import is_number, is_text, scalar

__all__ = [
    "common_type",
    "compute_type",
    "computed",
    "convert",
    "exact_type",
    "is_binary",
    "whole_and_rest",
    "wider_integer",
]


def compute_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type in which a column's values are computed."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return compute_type(arrow_type.storage_type)
    if pa.types.is_dictionary(arrow_type):
        return compute_type(arrow_type.value_type)
    if pa.types.is_string_view(arrow_type):
        return pa.string()
    if pa.types.is_binary_view(arrow_type):
        return pa.binary()
    return pa.float32() if pa.types.is_float16(arrow_type) else arrow_type


def computed(values: Any, target: pa.DataType) -> Any:
    """Convert stored values to their compute type, which is the target."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values if values.type == target else pc.cast(values, target)


def is_binary(arrow_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
        or pa.types.is_fixed_size_binary(arrow_type)
    )


def exact_type(number: pa.DataType) -> pa.DataType:
    """Return the decimal type that holds every value of an integer type; return a decimal type unchanged."""
    return number if pa.types.is_decimal(number) else pa.decimal128(_DIGITS[number.bit_width], 0)


_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""The digits of the integers of each width, as the reference counts them."""


def wider_integer(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the least integer type that holds the values of both, or the widest there is."""
    if pa.types.is_signed_integer(left) == pa.types.is_signed_integer(right):
        return max(left, right, key=lambda side: int(side.bit_width))
    unsigned, signed = (left, right) if pa.types.is_unsigned_integer(left) else (right, left)
    bits = min(max(2 * unsigned.bit_width, signed.bit_width), 64)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of both types compare, None if they do not compare."""
    if left == right:
        return left
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    if is_text(left) and is_text(right):
        return pa.large_string()
    if is_binary(left) and is_binary(right):
        return pa.large_binary()
    if all(pa.types.is_timestamp(side) or pa.types.is_date(side) for side in (left, right)):
        return _common_instant(left, right)
    if all(pa.types.is_time(side) for side in (left, right)):
        return pa.time64("ns") if "ns" in (left.unit, right.unit) else pa.time64("us")
    if all(pa.types.is_duration(side) for side in (left, right)):
        return pa.duration(_finer(left.unit, right.unit))
    return None


def convert(values: Any, target: pa.DataType) -> Any:
    """Cast values (array or scalar); raises `pa.ArrowInvalid` for one that does not fit.

    As in SQL, numbers and instants lose the digits that the target cannot hold (fractions, smaller units). If only the
    target has a time zone, a timestamp is wall time in it, and the earlier instant of two; a date is midnight in UTC.
    """
    source = values.type
    if source == target:
        return values
    if pa.types.is_timestamp(target) and target.tz is not None:
        if pa.types.is_date(source):
            return pc.cast(pc.cast(pc.cast(values, pa.timestamp(target.unit)), pa.int64()), target)
        if pa.types.is_timestamp(source) and source.tz is None:
            values = pc.assume_timezone(values, target.tz, ambiguous="earliest", nonexistent="earliest")
    if pa.types.is_floating(source) and pa.types.is_integer(target):
        return _whole(values, target)
    if is_text(source) and pa.types.is_time(target):
        values = pc.binary_join_element_wise(pa.scalar("1970-01-01 ", source), values, pa.scalar("", source))
        source = values.type
    between = _type_between(source, target)
    if between is not None:
        values = pc.cast(values, between)
    if pa.types.is_decimal(target):
        # pyarrow checks the digits before the point only if it drops none after it, and casts NaN to 0 if it may drop.
        return pc.cast(values if pa.types.is_floating(source) else _truncated(values, _wide(target)), target)
    return _truncated(values, target)


def whole_and_rest(values: Any, other: pa.DataType, shared: pa.DataType) -> tuple[Any, Any]:
    """Return instants or durations as whole ticks, and as the rest of a tick, both integers.

    Compared with such values of type `other`, first the ticks and then the rests, they compare as in their common type
    `shared`, which need not hold them.
    """
    unit = _unit(values.type)
    own = pa.duration(unit) if pa.types.is_duration(shared) else pa.timestamp(unit, shared.tz)
    ticks = pc.cast(convert(values, own), pa.int64())
    length = scalar(max(TICKS_PER_SECOND[unit] // TICKS_PER_SECOND[_unit(other)], 1), pa.int64())
    whole = pc.divide(ticks, length)  # it drops the fraction of negative ticks, too
    whole = pc.subtract(whole, pc.cast(pc.less(ticks, pc.multiply(whole, length)), pa.int64()))
    return whole, pc.subtract(ticks, pc.multiply(whole, length))


TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _unit(kind: pa.DataType) -> str:
    if pa.types.is_date(kind):
        return "s" if pa.types.is_date32(kind) else "ms"
    return str(kind.unit)


def _wide(decimal: pa.DataType) -> pa.DataType:
    return pa.decimal256(76, decimal.scale)


def _truncated(values: Any, target: pa.DataType) -> Any:
    return pc.cast(
        values,
        options=pc.CastOptions(
            target_type=target, allow_time_truncate=True, allow_float_truncate=True, allow_decimal_truncate=True
        ),
    )


def _type_between(source: pa.DataType, target: pa.DataType) -> pa.DataType | None:
    """Return the type to cast to first, for a cast that pyarrow does right only in two steps."""
    if is_text(source) and pa.types.is_time(target):
        return pa.timestamp(target.unit)
    if pa.types.is_decimal(source) and pa.types.is_floating(target):
        return pa.string()  # pyarrow's cast in one step has errors in the last digit
    if not pa.types.is_integer(source):
        return None
    if pa.types.is_timestamp(target) or pa.types.is_duration(target):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(target) and pa.types.is_int64(source) else None


def _whole(values: Any, target: pa.DataType) -> Any:
    """Cast floats to integers, dropping fractions; pyarrow's cast gives arbitrary numbers for NaN and overflow."""
    whole = pc.trunc(pc.cast(values, pa.float64()))
    kept = pc.cast(whole, options=pc.CastOptions(target_type=target, allow_float_truncate=True))
    fits = pc.and_(pc.is_finite(whole), pc.equal(pc.cast(kept, pa.float64(), safe=False), whole))
    misfits = pc.any(pc.invert(fits)).as_py() if isinstance(fits, pa.Array) else fits.as_py() is False
    if misfits:
        raise pa.ArrowInvalid(f"a number does not fit {target}")
    return kept


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        both_small = all(pa.types.is_float32(side) for side in (left, right))
        return pa.float32() if both_small else pa.float64()
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        return pa.decimal128(20, 0) if pa.uint64() in (left, right) else pa.int64()
    scale = max(side.scale if pa.types.is_decimal(side) else 0 for side in (left, right))
    whole = max(side.precision - side.scale if pa.types.is_decimal(side) else 20 for side in (left, right))
    return pa.decimal128(whole + scale, scale) if whole + scale <= 38 else pa.decimal256(min(whole + scale, 76), scale)


def _common_instant(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    stamps = [side for side in (left, right) if pa.types.is_timestamp(side)]
    if not stamps:
        return pa.date64()
    unit = _finer(stamps[0].unit, stamps[-1].unit)
    return pa.timestamp(unit, stamps[0].tz or stamps[-1].tz)


def _finer(left: str, right: str) -> str:
    return max(left, right, key=("s", "ms", "us", "ns").index)
