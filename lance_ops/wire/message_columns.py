"""Read some fields of many protobuf messages with numpy, all messages at once.

The protobuf library makes a Python object of each message, which costs more than the few numbers that are read of it.
Here each step reads the next field of every message that has one left. Messages that the library would refuse, and
some that are rare, are left to the library. Source: protobuf's wire format.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array, Uint64Array

__all__ = ["FieldColumn", "WireType", "join_messages", "read_message_columns"]

_MAX_VARINT_BYTES = 10
_MAX_TAG_BYTES = 5

_MOST_ROUNDS = 256
"""Each step costs as much for one message as for hundreds, so the library reads messages of more fields faster."""


class WireType:
    """How a field's value is stored."""

    NUMBER, BYTES = 0, 2


class FieldColumn(NamedTuple):
    """One field of many messages: which of them state it, and its values.

    `numbers` is the value of a number, and of bytes where they begin; `sizes` is 0 for numbers. A field that a message
    does not state has the number, place and size 0. `firsts` and `ends` say where the field itself stands in the data,
    its tag included.
    """

    is_stated: BoolArray
    numbers: Int64Array
    sizes: Int64Array
    firsts: Int64Array
    ends: Int64Array


def join_messages(messages: Sequence[bytes]) -> tuple[Uint8Array, Int64Array, Int64Array]:
    """Return messages end to end, and where each begins and ends."""
    sizes = np.fromiter(map(len, messages), np.int64, len(messages))
    stops = sizes.cumsum()
    return np.frombuffer(b"".join(messages), np.uint8), stops - sizes, stops


def read_message_columns(
    data: Uint8Array,
    starts: Int64Array,
    stops: Int64Array,
    wanted: Mapping[int, int],
    most_fields: int = sys.maxsize,
) -> dict[int, FieldColumn] | None:
    """Return the `wanted` fields, wire types by number, of the message in each range of `data`.

    Only the first `most_fields` fields of each message are looked at.

    Returns None for messages that are left to the protobuf library. One of them is malformed within these fields,
    repeats a wanted field, has it with another wire type or with a number of more than 63 bits, has a field of a fixed
    width or a group, or has more than 256 fields.
    """
    columns = {number: _empty_column(len(starts)) for number in wanted}
    at, live = starts.copy(), np.flatnonzero(starts < stops)
    for number_of_field in range(most_fields):
        if not len(live):
            break
        if number_of_field >= _MOST_ROUNDS:
            return None
        limits = stops[live]
        tags = _read_varints(data, at[live], limits)
        found = None if tags is None else _read_varints(data, tags.ends, limits)
        if tags is None or found is None:
            return None
        if (tags.ends - at[live] > _MAX_TAG_BYTES).any() or (tags.numbers >> np.uint64(32)).any():
            return None
        wire_types, numbers, values = tags.numbers & np.uint64(7), tags.numbers >> np.uint64(3), found.numbers
        are_bytes = wire_types == WireType.BYTES
        if not (are_bytes | (wire_types == WireType.NUMBER)).all() or not numbers.all():
            return None
        sizes = np.where(are_bytes, values, np.uint64(0))
        if (sizes > (limits - found.ends).astype(np.uint64)).any():
            return None
        ends = found.ends + sizes.astype(np.int64)
        for number, column in columns.items():
            here = np.flatnonzero(numbers == number)
            if len(here):
                owners, stated = live[here], np.where(are_bytes, found.ends.astype(np.uint64), values)[here]
                wrong = column.is_stated[owners].any() or (wire_types[here] != wanted[number]).any()
                if wrong or (stated >> np.uint64(63)).any():
                    return None
                column.is_stated[owners], column.numbers[owners] = True, stated.astype(np.int64)
                column.sizes[owners] = sizes[here].astype(np.int64)
                column.firsts[owners], column.ends[owners] = at[owners], ends[here]
        at[live] = ends
        live = live[ends < limits]
    return columns


class _Varints(NamedTuple):
    """Varints, and the places after them."""

    numbers: Uint64Array
    ends: Int64Array


def _read_varints(data: Uint8Array, at: Int64Array, limits: Int64Array) -> _Varints | None:
    """Return the varint at each place, modulo 2^64; None if one does not end before its limit."""
    if (at >= limits).any():
        return None
    last = data[at]
    numbers, ends = (last & 0x7F).astype(np.uint64), at + 1
    more = np.flatnonzero(last >= 0x80)
    for shift in range(7, 7 * _MAX_VARINT_BYTES, 7):
        if not len(more):
            return _Varints(numbers, ends)
        places = ends[more]
        if (places >= limits[more]).any():
            return None
        last = data[places]
        numbers[more] |= (last & 0x7F).astype(np.uint64) << np.uint64(shift)
        ends[more] += 1
        more = more[last >= 0x80]
    return None if len(more) else _Varints(numbers, ends)


def _empty_column(num_messages: int) -> FieldColumn:
    return FieldColumn(np.zeros(num_messages, np.bool_), *np.zeros((4, num_messages), np.int64))
