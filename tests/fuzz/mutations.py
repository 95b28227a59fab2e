"""Mutate the fields of messages and the bytes of buffers in a file, whose container stays valid."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.fuzz.anatomy import Anatomy, LegacyAnatomy, Malformed, Part, dissect, dissect_manifest

__all__ = ["mutate_bytes", "mutate_file", "mutate_manifest"]

Described: TypeAlias = Any
"""A field's descriptor; the two implementations of protobuf have no common type for it."""

_INTERESTING = (
    *(
        0,
        1,
        2,
        3,
        7,
        8,
        9,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        65,
        127,
        128,
        255,
        256,
        1000,
        1023,
        1024,
        1025,
        4095,
        4096,
        4097,
    ),
    *(2**15, 2**16 - 1, 2**16, 2**20, 2**28, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**48, 2**60, 2**62),
    *(2**63 - 1, 2**63, 2**64 - 1, -1, -2, -(2**31), -(2**63)),
)
_BOUNDS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_TEXTS = (
    *(
        "",
        "\0",
        "struct",
        "list",
        "list.struct",
        "map",
        "string",
        "large_binary",
        "null",
        "bool",
        "int8",
        "double",
        "json",
    ),
    *("fixed_size_list:float:4", "fixed_size_list:struct:2", "fixed_size_list:float:1073741824", "decimal:128:1:200"),
    *("fixed_size_binary:0", "fixed_size_binary:536870912", "fixed_size_list:null:3", "dict:string:int8:false", "-2"),
    *("timestamp:s:Mars", "lance-encoding:packed", "true", "lance.blob.v2", "ARROW:extension:name", "../x", "2.2"),
)
_MAX_LEAVES = 400


def mutate_file(data: bytes, random: Random, max_size: int = 1 << 20) -> bytes:
    """Return a data file with one to four changes."""
    try:
        anatomy = dissect(data)
    except Malformed:
        return mutate_bytes(data, random)[:max_size]
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        if isinstance(anatomy, LegacyAnatomy):
            _mutate_legacy(anatomy, random)
        else:
            _mutate_anatomy(anatomy, random)
    built = anatomy.build()
    if random.random() < 0.05:
        built = mutate_bytes(built, random)
    return built if len(built) <= max_size else mutate_bytes(data, random)[:max_size]


def mutate_manifest(data: bytes, random: Random, max_size: int = 1 << 20) -> bytes:
    """Return a manifest file with one to four changes."""
    try:
        anatomy = dissect_manifest(data)
    except Malformed:
        return mutate_bytes(data, random)[:max_size]
    for _ in range(random.choice((1, 1, 2, 4))):
        _mutate_message(random.choice(anatomy.messages), anatomy.messages, random)
    built = anatomy.build()
    return mutate_bytes(built, random)[:max_size] if random.random() < 0.1 else built[:max_size]


def mutate_bytes(data: bytes, random: Random) -> bytes:
    """Return bytes with one change: a flip, an overwritten number, a copy, a cut or an insertion."""
    out = bytearray(data or b"\0")
    at = random.randrange(len(out))
    match random.randrange(8):
        case 0:
            out[at] ^= 1 << random.randrange(8)
        case 1:
            out[at] = random.randrange(256)
        case 2 | 3:
            width = random.choice((1, 2, 4, 8))
            at -= at % width
            old = int.from_bytes(out[at : at + width], "little")
            out[at : at + width] = (_near(old, random) % (1 << 8 * width)).to_bytes(width, "little")
        case 4:
            size = random.randrange(1, 17)
            source = random.randrange(len(out))
            out[at : at + size] = out[source : source + size]
        case 5:
            out[at : at + random.randrange(1, 33)] = b""
        case 6:
            out[at:at] = random.randbytes(random.randrange(1, 17))
        case _:
            out[at : at + random.randrange(1, 65)] = bytes([random.choice((0, 0xFF, 0x80))]) * random.randrange(1, 65)
    return bytes(out)


def _mutate_anatomy(anatomy: Anatomy, random: Random) -> None:
    choice = random.random()
    if anatomy.buffers and choice < 0.55:
        _mutate_part(random.choice(anatomy.buffers), random)
    elif choice < 0.6 and anatomy.columns:
        _mutate_pages(anatomy, random)
    elif choice < 0.62:
        anatomy.version = random.choice(((0, 3), (2, 1), (2, 2)))
    else:
        descriptions = [page.description for column in anatomy.columns for page in column.pages]
        target = random.choice(descriptions if descriptions and random.random() < 0.7 else anatomy.messages)
        _mutate_message(target, anatomy.messages, random)


def _mutate_part(part: Part, random: Random) -> None:
    if random.random() < 0.1:
        part.data = part.data[: random.randrange(len(part.data) + 1)]
        return
    # most buffers begin with counts, widths and offsets
    head = random.choice((16, 256, len(part.data)))
    part.data = mutate_bytes(part.data[:head], random) + part.data[head:]


def _mutate_pages(anatomy: Anatomy, random: Random) -> None:
    column = random.choice(anatomy.columns)
    if not column.pages:
        return
    page = random.choice(column.pages)
    match random.randrange(5):
        case 0:
            column.pages.append(page)
        case 1:
            column.pages.remove(page)
        case 2:
            page.buffers.append(random.choice(anatomy.buffers or [Part(0, 0, b"")]))
        case 3 if page.buffers:
            page.buffers.pop(random.randrange(len(page.buffers)))
        case _:
            random.shuffle(page.buffers)


def _mutate_legacy(anatomy: LegacyAnatomy, random: Random) -> None:
    choice = random.random()
    if choice < 0.35:
        anatomy.body = bytearray(mutate_bytes(bytes(anatomy.body), random))
    elif choice < 0.6 and anatomy.page_table:
        at = random.choice(anatomy.page_table)
        (old,) = struct.unpack_from("<q", anatomy.body, at)
        struct.pack_into("<q", anatomy.body, at, _clip(_near(old, random), *_BOUNDS[FieldDescriptor.CPPTYPE_INT64]))
    else:
        _mutate_message(random.choice(anatomy.messages), anatomy.messages, random)


def _mutate_message(message: Message, pool: list[Message], random: Random) -> None:
    """Change one field somewhere in a message; parts may come from the messages in `pool`."""
    places = _fields_in(message)
    if not places:
        return
    owner, descriptor = random.choice(places)
    if _is_map(descriptor):
        _mutate_map(owner, descriptor, random)
    elif descriptor.label == FieldDescriptor.LABEL_REPEATED:
        _mutate_repeated(owner, descriptor, pool, random)
    elif descriptor.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        if random.random() < 0.2:
            owner.ClearField(descriptor.name)
        else:
            getattr(owner, descriptor.name).CopyFrom(_other(descriptor, pool, random))
    else:
        old = getattr(owner, descriptor.name)
        setattr(owner, descriptor.name, _scalar(descriptor, old, random))


def _fields_in(message: Message) -> list[tuple[Message, Described]]:
    """Return all fields of a message and its parts, each once, set or not."""
    found: list[tuple[Message, Described]] = []
    below = [message]
    while below and len(found) < _MAX_LEAVES:
        part = below.pop()
        fields: Sequence[Described] = part.DESCRIPTOR.fields
        for descriptor in fields:
            is_message = descriptor.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
            if is_message and descriptor.label != FieldDescriptor.LABEL_REPEATED:
                if part.HasField(descriptor.name):
                    below.append(getattr(part, descriptor.name))
                elif descriptor.containing_oneof and part.WhichOneof(descriptor.containing_oneof.name):
                    continue
            elif is_message and not _is_map(descriptor):
                below.extend(getattr(part, descriptor.name))
            found.append((part, descriptor))
    return found


def _is_map(descriptor: Described) -> bool:
    kind = descriptor.message_type
    return kind is not None and bool(kind.GetOptions().map_entry)


def _mutate_map(owner: Message, descriptor: Described, random: Random) -> None:
    entries = getattr(owner, descriptor.name)
    key: Any = random.choice(_TEXTS)
    value = descriptor.message_type.fields_by_name["value"]
    if value.type == FieldDescriptor.TYPE_BYTES:
        entries[key] = random.choice((b"true", b"\xff", b"lance.blob.v2"))
    elif value.type == FieldDescriptor.TYPE_STRING:
        entries[key] = random.choice(_TEXTS)


def _mutate_repeated(owner: Message, descriptor: Described, pool: list[Message], random: Random) -> None:
    items = getattr(owner, descriptor.name)
    at = random.randrange(len(items)) if len(items) else -1
    action = random.randrange(3)
    if action == 0 and at >= 0:
        del items[at]
    elif descriptor.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        copy = items.add()
        copy.CopyFrom(items[at] if at >= 0 and action == 1 else _other(descriptor, pool, random))
    elif at >= 0 and action == 1:
        items[at] = _scalar(descriptor, items[at], random)
    else:
        items.append(_scalar(descriptor, 0, random))


def _other(descriptor: Described, pool: list[Message], random: Random) -> Message:
    """Return a message of a field's type, from the pool or empty."""
    wanted = descriptor.message_type
    found: list[Message] = []
    below = list(pool)
    while below and len(found) < _MAX_LEAVES:
        part = below.pop()
        if part.DESCRIPTOR is wanted:
            found.append(part)
        listed: Sequence[tuple[Described, Any]] = part.ListFields()
        for inner, value in listed:
            if inner.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE and not _is_map(inner):
                below.extend(value if inner.label == FieldDescriptor.LABEL_REPEATED else [value])
    empty: Callable[[], Message] = wanted._concrete_class
    copy = empty()
    if found and random.random() < 0.9:
        copy.CopyFrom(random.choice(found))
    return copy


def _scalar(descriptor: Described, old: Any, random: Random) -> Any:
    match descriptor.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if descriptor.type == FieldDescriptor.TYPE_BYTES:
            return mutate_bytes(old if isinstance(old, bytes) else b"", random)
        case FieldDescriptor.CPPTYPE_STRING:
            return random.choice(_TEXTS)
        case FieldDescriptor.CPPTYPE_BOOL:
            return not old
        case FieldDescriptor.CPPTYPE_ENUM:
            return random.randrange(-1, 9)
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return float(random.choice(_INTERESTING))
    return _clip(_near(int(old), random), *_BOUNDS[descriptor.cpp_type])


def _near(old: int, random: Random) -> int:
    match random.randrange(5):
        case 0:
            return old + random.choice((-1, 1, -8, 8))
        case 1:
            return old ^ 1 << random.randrange(64)
        case 2:
            return old * random.choice((2, 3, 1000)) // random.choice((1, 2, 4))
    return random.choice(_INTERESTING)


def _clip(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)
