"""What files and manifests share: schema messages, length-prefixed framing, unknown fields, digests of bytes."""

from lance_ops.wire.digests import (
    DIGEST_BLOCK_BYTES,
    ChecksumReport,
    check_digest_block,
    digest_block,
    digest_block_report,
    digest_of,
    digest_of_buffer,
    digests_of_parts,
    has_digest_block,
    start_digest,
)
from lance_ops.wire.fields import metadata_to_pb, schema_from_pb, schema_to_pb
from lance_ops.wire.framing import MAGIC, frame, parse_message, unframe
from lance_ops.wire.message_columns import FieldColumn, WireType, join_messages, read_message_columns
from lance_ops.wire.shared_schemas import encoded_schema, shared_schema
from lance_ops.wire.unknown import restore_unknown, unknown_fields, unknown_numbers

__all__ = [
    "DIGEST_BLOCK_BYTES",
    "MAGIC",
    "ChecksumReport",
    "FieldColumn",
    "WireType",
    "check_digest_block",
    "digest_block",
    "digest_block_report",
    "digest_of",
    "digest_of_buffer",
    "digests_of_parts",
    "encoded_schema",
    "frame",
    "has_digest_block",
    "join_messages",
    "metadata_to_pb",
    "parse_message",
    "read_message_columns",
    "restore_unknown",
    "schema_from_pb",
    "schema_to_pb",
    "shared_schema",
    "start_digest",
    "unframe",
    "unknown_fields",
    "unknown_numbers",
]
