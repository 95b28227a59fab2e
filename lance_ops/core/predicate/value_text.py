"""Write values as text, as a cast to text and `concat` do; the spelling is the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["text_of"]

_PLAIN_DIGITS = {4: (-6, 13), 8: (-5, 16)}
"""For floats of 4 and 8 bytes, the digits before the point of numbers that are written without an exponent.

A number has more of them than the first bound, and at most the second. A negative count is of zeros after the point.
"""


def text_of(values: Any, target: pa.DataType) -> Any:
    """Return values (array or scalar) as text of the target's type; raise `pa.ArrowInvalid` for nested values."""
    kind = values.type
    if pa.types.is_floating(kind):
        text = _each(values, _float_text)
    elif pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        text = _instant_text(values)
    elif pa.types.is_time(kind):
        text = _without_zeros(pc.cast(values, pa.string()))
    elif pa.types.is_duration(kind):
        text = _each(values, _duration_text(_FRACTION_DIGITS[kind.unit]), pa.int64())
    else:
        text = values
    return pc.cast(text, target)


def _each(values: Any, spell: Any, as_type: pa.DataType | None = None) -> Any:
    """Spell each different value once."""
    if as_type is not None:
        values = pc.cast(values, as_type)
    if isinstance(values, pa.Scalar):
        return pa.scalar(
            spell(np.asarray(values.as_py(), values.type.to_pandas_dtype())[()]) if values.is_valid else None,
            pa.string(),
        )
    if pa.types.is_float16(values.type):
        halves = (None if value is None else np.float16(value) for value in values.to_pylist())
        return pa.array([None if half is None else spell(half) for half in halves], pa.string())
    encoded = values.dictionary_encode()
    spelled = [spell(value) for value in encoded.dictionary.to_numpy(zero_copy_only=False)]
    return pa.array(spelled, pa.string()).take(encoded.indices)


def _float_text(number: Any) -> str:
    """Return the fewest digits that tell a float from others of its type; a half float has no exponent."""
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "inf" if number > 0 else "-inf"
    if number.dtype == np.float16:
        return np.format_float_positional(np.float32(number), unique=True, trim="-")
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="-").split("e")
    most_zeros, most_digits = _PLAIN_DIGITS[number.dtype.itemsize]
    if most_zeros < int(exponent) + 1 <= most_digits:
        return np.format_float_positional(number, unique=True, trim="0")
    return f"{mantissa}e{int(exponent)}"


def _instant_text(values: Any) -> Any:
    if pa.types.is_date64(values.type):
        values = pc.cast(values, pa.timestamp("ms"))
    zone = values.type.tz
    local = pc.local_timestamp(values) if zone is not None else values
    text = _without_zeros(pc.replace_substring(pc.cast(local, pa.string()), " ", "T"))
    if zone is None:
        return text
    if zone == "UTC":
        return pc.binary_join_element_wise(text, "Z", "")
    return pc.binary_join_element_wise(text, pc.strftime(values, format="%Ez"), "")


def _without_zeros(text: Any) -> Any:
    """Leave out the groups of three zeros that end a fraction of a second."""
    shortened = pc.replace_substring_regex(text, pattern=r"(\.\d{3}|\.\d{6})(000)+$", replacement=r"\1")
    shortened = pc.replace_substring_regex(shortened, pattern=r"(\.\d{3})000$", replacement=r"\1")
    return pc.replace_substring_regex(shortened, pattern=r"\.000$", replacement="")


_FRACTION_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def _duration_text(digits: int) -> Any:
    def spell(ticks: Any) -> str:
        sign = -1 if ticks < 0 else 1
        seconds, fraction = divmod(abs(int(ticks)), 10**digits)
        days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
        point = f".{fraction:0{digits}d}" if digits else ""
        minus = "-" if sign < 0 and (seconds % 60 or fraction) else ""
        return f"{sign * days} days {sign * hours} hours {sign * minutes} mins {minus}{seconds % 60}{point} secs"

    return spell
