"""A cache of encoded schemas: a commit that does not change the schema writes the bytes that the last one wrote."""

from __future__ import annotations

from functools import lru_cache

from lance_ops.core.schema import Schema
from lance_ops.pb import table_pb2
from lance_ops.wire import metadata_to_pb, schema_to_pb

__all__ = ["encoded_schema"]

_CAPACITY = 32


def encoded_schema(schema: Schema) -> bytes:
    """Return a manifest's message that states only the schema.

    A schema with dictionaries is not cached: it may hold their values, and their positions differ between versions.
    """
    return _encode(schema) if schema.has_dictionaries else _encode_once(_ByIdentity(schema))


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
