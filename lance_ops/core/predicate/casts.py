"""Cast values as SQL's `CAST` does. It accepts more pairs of types than `types.convert`, which comparisons use."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import is_number, is_text, scalar
from lance_ops.core.predicate.types import convert, exact_type
from lance_ops.core.predicate.value_text import text_of

__all__ = ["cast_each", "cast_values"]

_FEW_VALUES = 8
"""So many values are cast one by one if any does not fit: if none fits, halves of them would be tried in vain."""


def cast_values(values: Any, target: pa.DataType) -> Any:
    """Cast values (array or scalar); raise `pa.ArrowInvalid` for one that does not fit.

    A cast between a number and a timestamp or duration takes the number as a count of units. A cast of a date or time
    to a signed integer returns such a count too. A cast to text spells values as the reference does.
    """
    source = values.type
    if source == target or pa.types.is_null(source):
        return convert(values, target)
    if pa.types.is_date(source) and pa.types.is_timestamp(target):
        return convert(pc.cast(values, pa.timestamp(target.unit)), target)  # midnight in the zone
    if pa.types.is_int32(source) and pa.types.is_date64(target):
        values, source = pc.cast(values, pa.date32()), pa.date32()  # the reference counts days there
    if is_text(target) and not is_text(source):
        return text_of(values, target)
    if is_number(target) and (
        _counts_ticks(source) or (_is_day_or_time(source) and pa.types.is_signed_integer(target))
    ):
        return cast_values(_ticks(values), target)
    if is_number(source) and _counts_ticks(target):
        return pc.cast(convert(values, pa.int64()), target)
    if pa.types.is_decimal(target) and is_number(source):
        return _decimals(values, target)
    if pa.types.is_boolean(target) and pa.types.is_decimal(source):
        return pc.not_equal(values, scalar(Decimal(0), source))
    return convert(values, target)


def _decimals(values: Any, target: pa.DataType) -> Any:
    """Cast numbers to decimals, rounded half away from zero.

    Arrow's option to drop digits would also turn NaN into 0 and let numbers pass that the precision does not hold.
    """
    if pa.types.is_integer(values.type):
        values = pc.cast(values, exact_type(values.type))
    if pa.types.is_decimal(values.type) and values.type.scale > target.scale:
        wide = pa.decimal256(min(values.type.precision + 1, 76), values.type.scale)
        values = pc.round(pc.cast(values, wide), target.scale, round_mode="half_towards_infinity")
    return pc.cast(values, target)


def cast_each(values: Any, target: pa.DataType) -> Any:
    """Cast the values that fit the target; the others become null."""
    try:
        return cast_values(values, target)
    except pa.ArrowInvalid:
        if isinstance(values, pa.Scalar):
            return scalar(None, target)
    if is_text(values.type):  # many rows share what does not fit
        encoded = values.dictionary_encode()
        return pa.concat_arrays(_cast_parts(encoded.dictionary, target)).take(encoded.indices)
    return pa.concat_arrays(_cast_parts(values, target))


def _cast_parts(values: pa.Array, target: pa.DataType) -> list[pa.Array]:
    """Return casts of one or more values: of all at once if they fit, otherwise of each half, or of each of a few."""
    try:
        return [cast_values(values, target)]
    except pa.ArrowInvalid:
        if len(values) == 1:
            return [pa.nulls(1, target)]
    length = (len(values) + 1) // 2 if len(values) > _FEW_VALUES else 1
    return [part for at in range(0, len(values), length) for part in _cast_parts(values.slice(at, length), target)]


def _counts_ticks(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def _is_day_or_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_time(kind))


def _ticks(values: Any) -> Any:
    return pc.cast(values, pa.int32() if values.type.bit_width == 32 else pa.int64())
