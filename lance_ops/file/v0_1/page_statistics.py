"""Page statistics of 0.1 files: for each batch and field the null count, a lower and an upper bound.

    a struct column named after the field's id    null_count: int64 | min_value | max_value, one row for every batch

The statistics are stored as one batch with its own page table. Bounds of floats ignore NaN; a lower bound of zero is
-0.0, an upper one +0.0; unknown bounds are infinite. Bounds of strings have at most 64 bytes: a longer upper bound is
cut and replaced by the next larger string, and is unknown if there is none. An unknown bound of strings is stored as
an empty string.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.arrow import is_text_or_bytes
from lance_ops.core.predicate import ColumnStats

__all__ = ["BOUNDED_BYTES", "bounds_of", "has_statistics", "stats_of_batch"]

BOUNDED_BYTES = 64
"""The longest bound of byte strings."""


def has_statistics(arrow_type: pa.DataType) -> bool:
    """Return whether fields of a type have statistics."""
    return bool(
        pt.is_boolean(arrow_type)
        or pt.is_integer(arrow_type)
        or pt.is_float32(arrow_type)
        or pt.is_float64(arrow_type)
        or pt.is_date(arrow_type)
        or is_text_or_bytes(arrow_type)
        or pt.is_decimal128(arrow_type)
    )


def bounds_of(array: pa.Array) -> tuple[Any, Any]:
    """Return a lower and an upper bound of one or more values without nulls; None for an unknown bound."""
    if pt.is_floating(array.type):
        return _float_bounds(array.to_numpy())
    found = pc.min_max(array)
    low, high = found["min"].as_py(), found["max"].as_py()
    if not is_text_or_bytes(array.type):
        return low, high
    is_text = isinstance(low, str)
    return _cut_low(low, is_text), _cut_high(high, is_text)


def stats_of_batch(stated: pa.StructScalar, arrow_type: pa.DataType, nullable: bool, num_rows: int) -> ColumnStats:
    """Return what a batch's statistics guarantee about the values that are read from its page.

    Writers compute statistics before they write the page. If a batch of another writer had nulls, its page has zeros in
    their place, which the bounds need not enclose. In a nullable field an empty byte string is read as a null. An empty
    string as a bound means that the bound is unknown.
    """
    had_nulls = stated["null_count"].as_py() != 0
    low, high = stated["min_value"], stated["max_value"]
    if not is_text_or_bytes(arrow_type):
        if had_nulls:
            return ColumnStats(null_count=0, num_rows=num_rows)
        return ColumnStats(low, high, null_count=0, num_rows=num_rows)
    if had_nulls and not nullable:
        return ColumnStats(num_rows=num_rows)
    low, high = (None if bound.as_py() in (None, "", b"") else bound for bound in (low, high))
    return ColumnStats(low, high, null_count=None if nullable else 0, num_rows=num_rows)


def _float_bounds(values: np.ndarray[Any, np.dtype[Any]]) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if not len(known):
        return -np.inf, np.inf
    low, high = float(known.min()), float(known.max())
    return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)


def _cut_low(value: Any, is_text: bool) -> Any:
    raw = value.encode() if is_text else value
    cut = raw[:BOUNDED_BYTES]
    return cut.decode(errors="ignore") if is_text else cut


def _cut_high(value: Any, is_text: bool) -> Any:
    raw = value.encode() if is_text else value
    if len(raw) <= BOUNDED_BYTES:
        return value
    if is_text:
        return _next_text(raw[:BOUNDED_BYTES].decode(errors="ignore"))
    return _next_bytes(raw[:BOUNDED_BYTES])


def _next_text(text: str) -> str | None:
    """Return a string larger than every string that begins with `text`, and not longer than `text`; None if none is."""
    while text:
        code = ord(text[-1]) + 1
        if 0xD800 <= code <= 0xDFFF:
            code = 0xE000
        if code <= 0x10FFFF and len(chr(code).encode()) == len(text[-1].encode()):
            return text[:-1] + chr(code)
        text = text[:-1]
    return None


def _next_bytes(value: bytes) -> bytes | None:
    value = value.rstrip(b"\xff")
    return value[:-1] + bytes([value[-1] + 1]) if value else None
