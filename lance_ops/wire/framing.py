"""Frame protobuf messages in manifests and legacy files with their length, and parse them.

u32 length | protobuf message            (little-endian, no padding)
"""

from __future__ import annotations

import struct
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from lance_ops.core.errors import CorruptFile

__all__ = ["MAGIC", "frame", "parse_message", "unframe"]

MAGIC = b"LANC"
_LENGTH = struct.Struct("<I")

M = TypeVar("M", bound=Message)


def frame(*message: bytes) -> bytes:
    """Join the parts of a message and prefix it with its length."""
    return b"".join((_LENGTH.pack(sum(map(len, message))), *message))


def unframe(data: memoryview, position: int, path: str, place: str) -> memoryview:
    """Return the message framed at `position`; raise `CorruptFile` if it does not lie inside `data`."""
    start = position + _LENGTH.size
    if position < 0 or start > len(data):
        raise CorruptFile(path, place, f"position {position} is outside the file's {len(data)} bytes")
    (length,) = _LENGTH.unpack_from(data, position)
    if start + length > len(data):
        raise CorruptFile(path, place, f"{length} bytes stated at {position}, but only {len(data) - start} follow")
    return data[start : start + length]


def parse_message(kind: type[M], data: bytes | memoryview, path: str, place: str) -> M:
    """Parse a protobuf message; raise `CorruptFile` naming the file and place if the bytes are not such a message."""
    message = kind()
    try:
        message.ParseFromString(bytes(data))
    except (DecodeError, RecursionError) as error:
        raise CorruptFile(path, place, f"not a {kind.DESCRIPTOR.full_name} message: {error}") from error
    return message
