"""Caches of decoded and of encoded schemas: a table's versions share one schema, and so do its files and many tables.

A schema caches what it derives, above all its Arrow schema, so a shared schema also saves that work. A manifest numbers
its fields and its schema's metadata as the `Schema` message of a data file does, so both are the same bytes. A commit
that does not change the schema writes the bytes that the version before it has.
"""

from __future__ import annotations

from functools import lru_cache

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.schema import Schema
from lance_ops.pb import file_pb2
from lance_ops.pb.manifest_parts_pb2 import ManifestParts
from lance_ops.wire.fields import MOST_SHARED, metadata_to_pb, schema_from_pb, schema_to_pb, wide_schema_from_pb
from lance_ops.wire.framing import parse_message
from lance_ops.wire.unknown import unknown_numbers

__all__ = ["encoded_schema", "shared_schema"]

_CAPACITY = 64


def shared_schema(encoded: bytes, path: str) -> Schema:
    """Return the schema of an encoded `Schema` message; raise as `schema_from_pb` does, with `path` as the file's name.

    Raises `CorruptFile` for bytes that are no such message.
    """
    try:
        return _as_encoded(encoded)
    except LanceOpsError:  # it did not name the file: raise again with the path
        message = parse_message(file_pb2.Schema, encoded, path, "schema")
        return schema_from_pb(message.fields, message.metadata, path)


def encoded_schema(schema: Schema) -> bytes:
    """Return the `Schema` message of a schema: a manifest's message that states only the schema.

    A schema with dictionaries is not cached: it may hold their values, and their positions differ between versions.
    """
    return _encode(schema) if schema.has_dictionaries else _encode_once(_ByIdentity(schema))


@lru_cache(_CAPACITY)
def _as_encoded(encoded: bytes) -> Schema:
    # Some writers write maps in no order: schemas that differ in nothing else are one schema.
    message = parse_message(file_pb2.Schema, encoded, "", "schema")
    return _in_order(message.SerializeToString(deterministic=True))


@lru_cache(_CAPACITY)
def _in_order(encoded: bytes) -> Schema:
    message = file_pb2.Schema.FromString(encoded)
    schema = None
    if len(message.fields) > MOST_SHARED:
        fields = list(ManifestParts.FromString(encoded).fields)
        schema = wide_schema_from_pb(fields, message.metadata, "")
    if schema is None:
        schema = schema_from_pb(message.fields, message.metadata, "")
    if not unknown_numbers(message):  # a manifest gives other numbers another meaning
        _encode_once(_ByIdentity(schema, encoded))
    return schema


class _ByIdentity:
    """A schema as a cache key that compares by identity, and its message if that is known.

    Comparing equal schemas field by field would take about as long as encoding one.
    """

    __slots__ = ("encoded", "schema")

    def __init__(self, schema: Schema, encoded: bytes | None = None) -> None:
        self.schema, self.encoded = schema, encoded

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self.schema is other.schema


@lru_cache(_CAPACITY)
def _encode_once(key: _ByIdentity) -> bytes:
    return _encode(key.schema) if key.encoded is None else key.encoded


def _encode(schema: Schema) -> bytes:
    message = file_pb2.Schema(fields=schema_to_pb(schema), metadata=metadata_to_pb(schema.metadata))
    return message.SerializeToString(deterministic=True)
