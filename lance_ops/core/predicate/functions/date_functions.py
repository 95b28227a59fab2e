"""The functions of dates, times and timestamps that a filter may call.

A part of a timestamp with a zone is a part of the zone's local time, except `epoch`, which counts from 1970 in UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.predicate.types import TICKS_PER_SECOND

__all__ = ["date_part", "date_trunc", "is_instant", "is_instant_or_time"]


def is_instant(arrow_type: pa.DataType) -> bool:
    """Return whether a type is one of timestamps or dates."""
    return bool(pa.types.is_timestamp(arrow_type) or pa.types.is_date(arrow_type))


def is_instant_or_time(arrow_type: pa.DataType) -> bool:
    """Return whether a type is one of timestamps, dates or times of day."""
    return is_instant(arrow_type) or bool(pa.types.is_time(arrow_type))


def date_part(part: Any, instants: Any) -> Any:
    """Return a part of dates, times or timestamps: int32, int64 for nanoseconds, a double for `epoch`.

    The parts below a second count from the minute's beginning. Raises `pa.ArrowInvalid` for an unknown part, and for a
    part that a time of day does not have.
    """
    name = str(part.as_py()).lower()
    name = _OTHER_NAMES.get(name, name)
    known = (*_DATE_PARTS, *_TIME_PARTS, "epoch")
    if name not in known:
        raise pa.ArrowInvalid(f"date_part takes {', '.join(known)}, not {name!r}")
    if pa.types.is_time(instants.type):
        if name not in (*_TIME_PARTS, "epoch"):
            raise pa.ArrowInvalid(f"a time of day has no {name}")
        instants = _since_1970(instants)
    elif pa.types.is_date(instants.type):
        instants = pc.cast(instants, pa.timestamp("ms" if pa.types.is_date64(instants.type) else "s"))
    if name == "epoch":
        return _epoch(instants)
    values = (_DATE_PARTS.get(name) or _TIME_PARTS[name])(instants)
    return pc.cast(values, pa.int64() if name == "nanosecond" else pa.int32())


def date_trunc(unit: Any, instants: Any) -> Any:
    """Return the beginning of the unit in which each date or timestamp lies, as a timestamp.

    The units are those of the clock in the timestamp's time zone. Where the clock goes back, a beginning that it shows
    twice is the last one that is not later. One that a change of the clock skips is the moment of the change.

    Raises `pa.ArrowInvalid` for an unknown unit.
    """
    name = str(unit.as_py()).lower()
    if name not in _TRUNCATIONS:
        raise pa.ArrowInvalid(f"date_trunc takes {', '.join(sorted(_TRUNCATIONS))}, not {name!r}")
    stamps = pc.cast(instants, pa.timestamp("us")) if pa.types.is_date(instants.type) else instants
    if stamps.type.tz is None:
        return pc.floor_temporal(stamps, unit=name)
    begun = pc.floor_temporal(pc.local_timestamp(stamps), unit=name)
    earlier, later = (
        pc.assume_timezone(begun, stamps.type.tz, ambiguous=which, nonexistent="latest")
        for which in ("earliest", "latest")
    )
    return pc.if_else(pc.less_equal(later, stamps), later, earlier)


def _since_1970(times: Any) -> Any:
    """Return times of day as timestamps of the first day of 1970."""
    width = pa.int32() if times.type.bit_width == 32 else pa.int64()
    return pc.cast(pc.cast(pc.cast(times, width), pa.int64()), pa.timestamp(times.type.unit))


def _epoch(instants: Any) -> Any:
    """Return the seconds since 1970 in UTC."""
    per_second = TICKS_PER_SECOND[instants.type.unit]
    ticks = pc.cast(instants, pa.int64())
    return pc.divide(pc.cast(ticks, pa.float64(), safe=False), pa.scalar(float(per_second)))


def _within_minute(per_second: int) -> Callable[[Any], Any]:
    """Return a function that counts units since the minute began."""

    def count(instants: Any) -> Any:
        parts = ((pc.second, 10**9), (pc.millisecond, 10**6), (pc.microsecond, 10**3), (pc.nanosecond, 1))
        nanoseconds: Any = pa.scalar(0, pa.int64())
        for part, length in parts:
            nanoseconds = pc.add(nanoseconds, pc.multiply(part(instants), pa.scalar(length, pa.int64())))
        return pc.divide(nanoseconds, pa.scalar(10**9 // per_second, pa.int64()))

    return count


_DATE_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "isoyear": pc.iso_year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "dow": lambda instants: pc.day_of_week(instants, week_start=7),
    "isodow": lambda instants: pc.day_of_week(instants, count_from_zero=False),
    "doy": pc.day_of_year,
}
_TIME_PARTS: dict[str, Callable[[Any], Any]] = {
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "millisecond": _within_minute(10**3),
    "microsecond": _within_minute(10**6),
    "nanosecond": _within_minute(10**9),
}
_OTHER_NAMES = {f"{name}s": name for name in ("millisecond", "microsecond", "nanosecond")}
_TRUNCATIONS = frozenset(
    ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"]
)
