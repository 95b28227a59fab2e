"""A cache of decoded and of encoded schemas: the versions of a table share one schema, and so do many tables.

A schema caches what it derives, above all its Arrow schema, so a shared schema also saves that work.
"""

from __future__ import annotations

from functools import lru_cache

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.schema import Schema
from lance_ops.pb import table_pb2
from lance_ops.wire import metadata_to_pb, schema_from_pb, schema_to_pb

__all__ = ["cached_schema", "encoded_schema"]

_CAPACITY = 32


def cached_schema(message: table_pb2.Manifest, path: str) -> Schema:
    """Return the schema that a manifest states; raise as `schema_from_pb` does, with `path` as the manifest's name."""
    part = table_pb2.Manifest(fields=message.fields, schema_metadata=message.schema_metadata)
    try:
        return _decoded(part.SerializeToString(deterministic=True))
    except LanceOpsError:  # it did not name the manifest: raise again with the path
        return schema_from_pb(message.fields, message.schema_metadata, path)


def encoded_schema(schema: Schema) -> bytes:
    """Return a manifest's message that states only the schema.

    A schema with dictionaries is not cached: it may hold their values, and their positions differ between versions.
    """
    return _encode(schema) if schema.has_dictionaries else _encode_once(_ByIdentity(schema))


@lru_cache(_CAPACITY)
def _decoded(encoded: bytes) -> Schema:
    part = table_pb2.Manifest.FromString(encoded)
    return schema_from_pb(part.fields, part.schema_metadata, "")


class _ByIdentity:
    """A schema as a cache key that compares by identity; versions share the object.

    Comparing equal schemas field by field would take about as long as encoding one.
    """

    __slots__ = ("schema",)

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self.schema is other.schema


@lru_cache(_CAPACITY)
def _encode_once(key: _ByIdentity) -> bytes:
    return _encode(key.schema)


def _encode(schema: Schema) -> bytes:
    part = table_pb2.Manifest(fields=schema_to_pb(schema), schema_metadata=metadata_to_pb(schema.metadata))
    return part.SerializeToString(deterministic=True)
