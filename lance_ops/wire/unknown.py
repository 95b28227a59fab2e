"""Wire fields of a newer writer, carried through a rewrite untouched."""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

__all__ = ["restore_unknown", "unknown_fields", "unknown_numbers"]


def unknown_fields(message: Message) -> bytes:
    """Return, serialized, the fields of a parsed message that our protos do not name (nested messages' excepted)."""
    if not len(UnknownFieldSet(message)):
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for field in message.DESCRIPTOR.fields:
        rest.ClearField(field.name)
    return rest.SerializeToString()


def unknown_numbers(message: Message) -> list[int]:
    """Return the numbers of the fields of a parsed message that our protos do not name."""
    found = UnknownFieldSet(message)
    return [found[index].field_number for index in range(len(found))]


def restore_unknown(message: Message, unknown: bytes) -> None:
    """Add what `unknown_fields` kept to a message that is about to be written."""
    if unknown:
        message.MergeFromString(unknown)
