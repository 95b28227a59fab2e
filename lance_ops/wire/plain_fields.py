"""Read the fields of a wide schema together: columns without children, most of which differ in id and name alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from google.protobuf.message import DecodeError

from lance_ops.core.schema import NO_PARENT, Field, PlainColumns
from lance_ops.pb import file_pb2
from lance_ops.wire.message_columns import WireType, join_messages, read_message_columns

__all__ = ["read_plain_columns"]

_NAME, _ID = 2, 3
_MAX_ID = (1 << 31) - 1


def read_plain_columns(messages: Sequence[bytes], make_field: Callable[[file_pb2.Field], Field]) -> PlainColumns | None:
    """Return the columns of encoded `Field` messages; one of the messages of each kind is parsed.

    Returns None for fields that are read one by one: one of them is below another, is malformed, has metadata, a
    dictionary or unknown fields, or does not begin with its name and its id, as most writers write it. Raises as
    `make_field` does.
    """
    data, starts, stops = join_messages(messages)
    wanted = {_NAME: WireType.BYTES, _ID: WireType.NUMBER}
    found = read_message_columns(data, starts, stops, wanted, most_fields=len(wanted))
    if found is None:
        return None
    names, ids = found[_NAME], found[_ID]
    begin_so = (names.firsts == starts) & (~ids.is_stated | (ids.firsts == names.ends))
    if not (begin_so & names.is_stated & (ids.numbers <= _MAX_ID)).all():
        return None
    places = names.numbers - starts
    rest = np.where(ids.is_stated, ids.ends, names.ends) - starts
    numbers: dict[bytes, int] = {}
    kinds, samples = [], list[Field]()
    for message, first in zip(messages, rest.tolist(), strict=True):
        rest_of_message = message[first:]
        kind = numbers.setdefault(rest_of_message, len(samples))
        kinds.append(kind)
        if kind == len(samples):
            sample = _sample(message, rest_of_message, make_field)
            if sample is None:
                return None
            samples.append(sample)
    bounds = zip(messages, places.tolist(), (places + names.sizes).tolist(), strict=True)
    try:
        texts = [message[first:end].decode() for message, first, end in bounds]
    except UnicodeDecodeError:
        return None
    return PlainColumns(ids.numbers.tolist(), texts, kinds, samples)


def _sample(encoded: bytes, rest: bytes, make_field: Callable[[file_pb2.Field], Field]) -> Field | None:
    """Return the field of a message, if all messages with this `rest` behind name and id may share what it says."""
    try:
        message, written_so = file_pb2.Field.FromString(encoded), file_pb2.Field.FromString(rest)
    except DecodeError:
        return None
    # A second name or id holds. The library may write it where it stands, so the bytes alone do not show it.
    if written_so.name or written_so.id or written_so.SerializeToString(deterministic=True) != rest:
        return None
    made = make_field(message)
    is_plain = made.parent_id == NO_PARENT and made.dictionary is None and not made.metadata and not made.unknown
    return made if is_plain else None
