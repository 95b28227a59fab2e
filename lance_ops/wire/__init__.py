"""The protobuf parts that files and manifests share: schema messages, length-prefixed framing, unknown fields."""

from lance_ops.wire.fields import metadata_to_pb, schema_from_pb, schema_to_pb
from lance_ops.wire.framing import MAGIC, frame, parse_message, unframe
from lance_ops.wire.unknown import restore_unknown, unknown_fields, unknown_numbers

__all__ = [
    "MAGIC",
    "frame",
    "metadata_to_pb",
    "parse_message",
    "restore_unknown",
    "schema_from_pb",
    "schema_to_pb",
    "unframe",
    "unknown_fields",
    "unknown_numbers",
]
