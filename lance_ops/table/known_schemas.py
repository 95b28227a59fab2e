"""Schemas of manifests, decoded once: the versions of a table share one, and so do many tables.

What a schema is asked for first, its Arrow form above all, it keeps, so that the next version finds that done as well.
"""

from __future__ import annotations

from functools import lru_cache

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.schema import Schema
from lance_ops.pb import table_pb2
from lance_ops.wire.fields import schema_from_pb

__all__ = ["known_schema"]

_KEPT = 32


def known_schema(message: table_pb2.Manifest, path: str) -> Schema:
    """Return the schema that a manifest states; raise as `schema_from_pb` does, `path` naming the manifest."""
    part = table_pb2.Manifest(fields=message.fields, schema_metadata=message.schema_metadata)
    try:
        return _decoded(part.SerializeToString(deterministic=True))
    except LanceOpsError:  # which named no manifest
        return schema_from_pb(message.fields, message.schema_metadata, path)


@lru_cache(_KEPT)
def _decoded(encoded: bytes) -> Schema:
    part = table_pb2.Manifest.FromString(encoded)
    return schema_from_pb(part.fields, part.schema_metadata, "")
