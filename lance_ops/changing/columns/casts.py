"""Cast a column to another type of the same kind, or between dates, times and timestamps.

A value that would lose digits is an error. A timestamp becomes the date or the time of day on the clock of its zone,
without the other one. A date becomes midnight, and a timestamp without a zone keeps what its clock shows, in the zone
of the target. A clock that a zone skips or repeats is an error.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.arrow import is_any_list, is_text_or_view

__all__ = ["cast_column", "is_castable"]

_KINDS = (
    pt.is_integer,
    pt.is_floating,
    pt.is_decimal,
    is_text_or_view,
    lambda each: pt.is_binary(each) or pt.is_large_binary(each),
    pt.is_timestamp,
    pt.is_date,
    pt.is_time,
    pt.is_duration,
)


def is_castable(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a column may change from one type to the other, if its values fit."""
    if any(is_kind(given) and is_kind(wanted) for is_kind in _KINDS):
        return True
    if pt.is_timestamp(given):
        return bool(pt.is_date(wanted) or pt.is_time(wanted))
    if pt.is_date(given):
        return bool(pt.is_timestamp(wanted))
    if is_any_list(given) and is_any_list(wanted):
        return given.value_type == wanted.value_type or is_castable(given.value_type, wanted.value_type)
    return False


def cast_column(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast a column, a struct child by child, by position; raise `pa.ArrowInvalid` for a value that does not fit."""
    if values.type == target:
        return values
    if pt.is_struct(values.type) and pt.is_struct(target):
        children = [cast_column(values.field(at), target.field(at).type) for at in range(target.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=values.is_null())
    if is_any_list(values.type) and is_any_list(target):
        return pc.cast(_with_items(values, target.value_type), target)
    return _cast_times(values, target)


def _cast_times(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pt.is_timestamp(values.type) and (pt.is_date(target) or pt.is_time(target)):
        if values.type.tz is not None:
            values = pc.local_timestamp(values)
        return pc.cast(pc.cast(values, pa.date32()) if pt.is_date(target) else values, target)
    if pt.is_timestamp(target) and target.tz is not None and getattr(values.type, "tz", None) is None:
        clock = pc.cast(values, pa.timestamp(target.unit))
        return pc.assume_timezone(clock, target.tz)
    return pc.cast(values, target)


def _with_items(values: pa.Array, item: pa.DataType) -> pa.Array:
    """Cast the items of lists, which stay lists of their kind."""
    kind = values.type
    if kind.value_type == item:
        return values
    values = values.take(pa.array(range(len(values))))  # begins at the first item, and null lists have no items
    items, nulls = cast_column(values.values, item), values.is_null()
    if pt.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(items, kind.list_size, mask=nulls)
    lists = pa.LargeListArray if pt.is_large_list(kind) else pa.ListArray
    return lists.from_arrays(values.offsets, items, mask=nulls)
