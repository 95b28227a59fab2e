"""Decode and encode the index sections of manifests, each section once while it stays the same.

The versions of a table share their segments until an index changes. To decode a segment's bitmap takes longer than to
decode the rest of a short manifest. Segments never change, so versions can share them as values too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from lance_ops.core.errors import LanceOpsError
from lance_ops.pb import table_pb2
from lance_ops.table.index_metadata import IndexMetadata
from lance_ops.wire import parse_message, restore_unknown, unknown_fields

__all__ = ["IndexSection", "decode_index_section", "encode_index_section"]

_MOST_DECODED, _MOST_ENCODED = 16, 4
_LONGEST_BYTES = 128 << 10
"""Longer sections are decoded and encoded each time, so that both caches stay small."""


class IndexSection(NamedTuple):
    """The segments of a manifest, and the unknown fields of their section's message."""

    segments: tuple[IndexMetadata, ...] = ()
    unknown: bytes = b""


def decode_index_section(encoded: bytes, path: str) -> IndexSection:
    """Return the section that a message encodes; raise as `IndexMetadata.from_pb` does, with `path` as the file's name.

    Raises `CorruptFile` for bytes that are no such message.
    """
    if len(encoded) > _LONGEST_BYTES:
        return _decode(encoded, path)
    try:
        return _decode_once(encoded)
    except LanceOpsError:  # it did not name the file: raise again with the path
        return _decode(encoded, path)


def encode_index_section(section: IndexSection) -> bytes:
    """Return the message of a section. It is encoded once while its segments are the same object, unless it is long."""
    try:
        return _encode_once(_BySegments(section))
    except _LongSection as error:
        return error.encoded


class _LongSection(Exception):
    """Carries a message of more than `_LONGEST_BYTES` past `lru_cache`, which keeps what a function returns."""

    def __init__(self, encoded: bytes) -> None:
        super().__init__(len(encoded))
        self.encoded = encoded


class _BySegments:
    """A section as a cache key that compares its segments by identity, which takes less time than to encode them."""

    __slots__ = ("section",)

    def __init__(self, section: IndexSection) -> None:
        self.section = section

    def __hash__(self) -> int:
        return id(self.section.segments)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _BySegments)
            and self.section.segments is other.section.segments
            and self.section.unknown == other.section.unknown
        )


@lru_cache(_MOST_DECODED)
def _decode_once(encoded: bytes) -> IndexSection:
    return _decode(encoded, "")


def _decode(encoded: bytes, path: str) -> IndexSection:
    message = parse_message(table_pb2.IndexSection, encoded, path, "index section")
    return IndexSection(tuple(IndexMetadata.from_pb(index, path) for index in message.indices), unknown_fields(message))


@lru_cache(_MOST_ENCODED)
def _encode_once(key: _BySegments) -> bytes:
    message = table_pb2.IndexSection(indices=[index.to_pb() for index in key.section.segments])
    restore_unknown(message, key.section.unknown)
    encoded = message.SerializeToString()
    if len(encoded) > _LONGEST_BYTES:
        raise _LongSection(encoded)
    return encoded
