"""Keep the protobuf fields that a newer writer added, so that a rewrite writes them back unchanged."""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

__all__ = ["restore_unknown", "unknown_fields", "unknown_numbers"]


def unknown_fields(message: Message) -> bytes:
    """Return, serialized, the fields of a parsed message that our protos do not define; nested messages are skipped."""
    if not len(UnknownFieldSet(message)):
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for field in message.DESCRIPTOR.fields:
        rest.ClearField(field.name)
    return rest.SerializeToString()


def unknown_numbers(message: Message) -> list[int]:
    """Return the numbers of the fields of a parsed message that our protos do not define."""
    found = UnknownFieldSet(message)
    return [found[index].field_number for index in range(len(found))]


def restore_unknown(message: Message, unknown: bytes) -> None:
    """Add the fields that `unknown_fields` returned to a message before it is written."""
    if unknown:
        message.MergeFromString(unknown)
