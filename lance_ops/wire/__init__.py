"""What files and manifests share of the wire: schemas as messages, framing, and fields we do not know."""

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
