"""Schemas of manifests, decoded and encoded once: the versions of a table share one, and so do many tables.

What a schema is asked for first, its Arrow form above all, it keeps, so that the next version finds that done as well.
"""

from __future__ import annotations

from functools import lru_cache

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.schema import Schema
from lance_ops.pb import table_pb2
from lance_ops.wire import metadata_to_pb, schema_from_pb, schema_to_pb

__all__ = ["cached_schema", "encoded_schema"]

_KEPT = 32


def cached_schema(message: table_pb2.Manifest, path: str) -> Schema:
    """Return the schema that a manifest states; raise as `schema_from_pb` does, `path` naming the manifest."""
    part = table_pb2.Manifest(fields=message.fields, schema_metadata=message.schema_metadata)
    try:
        return _decoded(part.SerializeToString(deterministic=True))
    except LanceOpsError:  # which named no manifest
        return schema_from_pb(message.fields, message.schema_metadata, path)


def encoded_schema(schema: Schema) -> bytes:
    """Return a manifest's message that states nothing but the schema.

    One with dictionaries is not kept: it may hold their values, and says anew in each version where they are.
    """
    return _encode(schema) if schema.has_dictionaries else _encode_once(_ByIdentity(schema))


@lru_cache(_KEPT)
def _decoded(encoded: bytes) -> Schema:
    part = table_pb2.Manifest.FromString(encoded)
    return schema_from_pb(part.fields, part.schema_metadata, "")


class _ByIdentity:
    """A schema as a key that costs the same for any number of columns: versions share the very object.

    To compare it with an equal one, field by field, would take about as long as to encode it.
    """

    __slots__ = ("schema",)

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self.schema is other.schema


@lru_cache(_KEPT)
def _encode_once(key: _ByIdentity) -> bytes:
    return _encode(key.schema)


def _encode(schema: Schema) -> bytes:
    part = table_pb2.Manifest(fields=schema_to_pb(schema), schema_metadata=metadata_to_pb(schema.metadata))
    return part.SerializeToString(deterministic=True)
