"""A cache of decoded schemas: the versions of a table share one schema, and so do its files and many tables.

A schema caches what it derives, above all its Arrow schema, so a shared schema also saves that work. A manifest numbers
its fields and its schema's metadata as the `Schema` message of a data file does, so both are the same bytes.
"""

from __future__ import annotations

from functools import lru_cache

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.schema import Schema
from lance_ops.pb import file_pb2
from lance_ops.wire.fields import schema_from_pb
from lance_ops.wire.framing import parse_message

__all__ = ["shared_schema"]

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


@lru_cache(_CAPACITY)
def _as_encoded(encoded: bytes) -> Schema:
    # Some writers write maps in no order: schemas that differ in nothing else are one schema.
    message = parse_message(file_pb2.Schema, encoded, "", "schema")
    return _in_order(message.SerializeToString(deterministic=True))


@lru_cache(_CAPACITY)
def _in_order(encoded: bytes) -> Schema:
    message = file_pb2.Schema.FromString(encoded)
    return schema_from_pb(message.fields, message.metadata, "")
