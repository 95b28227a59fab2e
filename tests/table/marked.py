"""Manifests as a newer writer may leave them: a field that nobody knows yet in every message."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lance_ops.pb import table_pb2
from lance_ops.wire.framing import frame, unframe

__all__ = ["marked", "marks"]

_FOOTER = struct.Struct("<QHH4s")
_MARK, _NUMBER = b"\xc2\x3e\x03new", 1000  # three bytes under that number
_CLOSED = ("google.protobuf.", "lance.file.Dictionary", "lance.table.UUID")
"""Messages that will not grow: protobuf's own, one of the frozen 0.1 format, sixteen bytes."""


def marked(data: bytes) -> bytes:
    """Return a manifest's file with the field in every message."""
    message, indices, transaction = _parts(data)
    parts = []
    if indices is not None:
        for _, inner in _walk(indices, "indices"):
            inner.MergeFromString(_MARK)
        message.index_section = 0
        parts.append(frame(indices.SerializeToString()))
    if transaction is not None:
        message.transaction_section = sum(map(len, parts))
        parts.append(frame(transaction))
    for _, inner in _walk(message, "manifest"):
        inner.MergeFromString(_MARK)
    position = sum(map(len, parts))
    return b"".join([*parts, frame(message.SerializeToString()), _FOOTER.pack(position, 0, 2, b"LANC")])


def marks(data: bytes) -> set[str]:
    """Return the places of a manifest's file that have the field, such as `manifest.fragments[0].files[1]`."""
    message, indices, _ = _parts(data)
    roots: list[tuple[Message, str]] = [(message, "manifest")]
    if indices is not None:
        roots.append((indices, "indices"))
    return {place for root, name in roots for place, inner in _walk(root, name) if _has_mark(inner)}


def _has_mark(message: Message) -> bool:
    unknown = UnknownFieldSet(message)
    return any(unknown[at].field_number == _NUMBER for at in range(len(unknown)))


def _parts(data: bytes) -> tuple[table_pb2.Manifest, table_pb2.IndexSection | None, bytes | None]:
    view = memoryview(data)
    position = _FOOTER.unpack(data[-_FOOTER.size :])[0]
    message = table_pb2.Manifest.FromString(bytes(unframe(view, position, "m", "manifest")))
    indices = transaction = None
    if message.HasField("index_section"):
        section = bytes(unframe(view, message.index_section, "m", "index section"))
        indices = table_pb2.IndexSection.FromString(section)
    if message.HasField("transaction_section"):
        transaction = bytes(unframe(view, message.transaction_section, "m", "transaction"))
    return message, indices, transaction


def _walk(message: Message, place: str) -> Iterator[tuple[str, Message]]:
    """Yield every message, the innermost first."""
    for field, value in message.ListFields():
        kind = field.message_type
        if kind is None or kind.GetOptions().map_entry or kind.full_name.startswith(_CLOSED):
            continue
        if isinstance(value, Message):
            yield from _walk(value, f"{place}.{field.name}")
        else:
            for at, inner in enumerate(value):
                yield from _walk(inner, f"{place}.{field.name}[{at}]")
    yield place, message
