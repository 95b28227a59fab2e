"""Encode a manifest to the bytes of its file, and decode it.

    [dictionaries]  the values of 0.1 dictionary columns, to which the schema refers by position (`dictionary_values`)
    [IndexSection]  u32 length | message        only if the version has indices
    [Transaction]   u32 length | message        the transaction that made the version, byte for byte as its own file
    digest          16 bytes over all others    see `wire.digests`; other writers leave it out
    Manifest        u32 length | message        states the positions of the dictionaries and of the two sections
    footer          u64 position of the manifest | u16 major 0 | u16 minor 2 | "LANC"

Little-endian, nothing between the sections, the manifest last. No message holds the digest: messages are carried into
the next version with their unknown fields, and the digest would be wrong there.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from lance_ops.core.errors import CorruptFile
from lance_ops.core.versions import FileVersion
from lance_ops.pb import manifest_parts_pb2, table_pb2
from lance_ops.table.fragments import FragmentList
from lance_ops.table.index_sections import IndexSection, decode_index_section, encode_index_section
from lance_ops.table.manifest.dictionary_values import empty_dictionaries, load_dictionaries, place_dictionaries
from lance_ops.table.manifest.manifest import Manifest
from lance_ops.table.manifest.version_summary import VersionSummary
from lance_ops.wire import (
    DIGEST_BLOCK_BYTES,
    MAGIC,
    ChecksumReport,
    check_digest_block,
    digest_block,
    digest_block_report,
    frame,
    parse_message,
    shared_schema,
    unframe,
)

__all__ = [
    "decode_manifest",
    "decode_summary",
    "decode_with_transaction",
    "encode_manifest",
    "inline_transaction",
    "manifest_checksum_report",
]

BytesLike: TypeAlias = bytes | bytearray | memoryview | pa.Buffer

_FOOTER = struct.Struct("<QHH4s")
_MAJOR, _MINOR = 0, 2
_LENGTH_BYTES = 4


def encode_manifest(manifest: Manifest, transaction: bytes) -> bytes:
    """Return the bytes of a manifest's file; `transaction` is the encoded transaction that made it, empty for none.

    Raises `UnsupportedFeature` for a dictionary column of a 0.1 table whose values were not loaded.
    """
    if _is_legacy(manifest):
        dictionaries, schema = place_dictionaries(manifest.schema)
    else:
        dictionaries, schema = b"", empty_dictionaries(manifest.schema)
    message = (manifest if schema is manifest.schema else replace(manifest, schema=schema)).to_pb()
    parts = [dictionaries]
    if manifest.indices or manifest.unknown_of_indices:
        message.index_section = len(dictionaries)
        parts.append(frame(encode_index_section(IndexSection(manifest.indices, manifest.unknown_of_indices))))
    if transaction:
        message.transaction_section = sum(map(len, parts))
        parts.append(frame(transaction))
    position = sum(map(len, parts)) + DIGEST_BLOCK_BYTES
    framed = frame(message.SerializeToString(deterministic=True), manifest.fragments.section)
    footer = _FOOTER.pack(position, _MAJOR, _MINOR, MAGIC)
    return b"".join((*parts, digest_block(*parts, framed, footer), framed, footer))


def decode_manifest(data: BytesLike, path: str) -> Manifest:
    """Decode a manifest's file; `path` names it in errors.

    Raises `CorruptFile` naming the place, also for bytes that do not have their digest. Raises `UnsupportedFeature` for
    a manifest that this library cannot decode. Each fragment is decoded, and may raise, on first access.
    `check_readable` checks the feature flags.
    """
    view = memoryview(data)
    return _manifest(view, _parts(view, path), path)


def decode_with_transaction(data: BytesLike, path: str) -> tuple[Manifest, bytes | None]:
    """Return the results of `decode_manifest` and `inline_transaction`, parsing the file once."""
    view = memoryview(data)
    parts = _parts(view, path)
    return _manifest(view, parts, path), _transaction(view, parts.message, path)


def decode_summary(data: BytesLike, path: str) -> VersionSummary:
    """Decode the `VersionSummary` of a manifest's file; `path` names it in errors.

    Raises `CorruptFile` and `UnsupportedFeature` as `decode_manifest` does, but not for the parts that it leaves out.
    """
    section = _section(memoryview(data), path)
    return VersionSummary.from_pb(parse_message(manifest_parts_pb2.ManifestSummary, section, path, "manifest"), path)


def inline_transaction(data: BytesLike, path: str) -> bytes | None:
    """Return the encoded transaction in a manifest's file; None if there is none."""
    view = memoryview(data)
    message = parse_message(manifest_parts_pb2.ManifestTransaction, _section(view, path), path, "manifest")
    return _transaction(view, message, path)


def manifest_checksum_report(data: BytesLike) -> ChecksumReport:
    """Return whether a manifest's file carries a digest, and whether its bytes have it."""
    view = memoryview(data)
    position = _FOOTER.unpack_from(view, len(view) - _FOOTER.size)[0] if len(view) >= _FOOTER.size else 0
    return digest_block_report(view, position - DIGEST_BLOCK_BYTES)


class _Parts(NamedTuple):
    """A manifest's message without its schema and its fragments, the schema's message, and the fragments."""

    message: table_pb2.Manifest
    schema: bytes
    fragments: FragmentList


def _manifest(view: memoryview, parts: _Parts, path: str) -> Manifest:
    indices, message = IndexSection(), parts.message
    if message.HasField("index_section"):
        section = unframe(view, message.index_section, path, "index section")
        indices = decode_index_section(bytes(section), path)
    manifest = Manifest.from_pb(message, shared_schema(parts.schema, path), parts.fragments, indices, path)
    if _is_legacy(manifest):
        return replace(manifest, schema=load_dictionaries(manifest.schema, view, path))
    return manifest


def _transaction(
    view: memoryview, message: table_pb2.Manifest | manifest_parts_pb2.ManifestTransaction, path: str
) -> bytes | None:
    if message.HasField("transaction_section"):
        position = message.transaction_section
    elif message.HasField("transaction_section_deprecated"):
        position = message.transaction_section_deprecated
    else:
        return None
    return bytes(unframe(view, position, path, "transaction section"))


def _is_legacy(manifest: Manifest) -> bool:
    return manifest.data_format.version == FileVersion.V0_1.value


def _section(view: memoryview, path: str) -> memoryview:
    """Return the manifest's message from its file; check the footer and the digest."""
    footer_at = len(view) - _FOOTER.size
    if footer_at < 0:
        raise CorruptFile(path, "footer", f"the file has {len(view)} bytes, a footer alone has {_FOOTER.size}")
    position, _, _, magic = _FOOTER.unpack_from(view, footer_at)
    if magic != MAGIC:
        raise CorruptFile(path, "footer", f"ends with {magic!r}, not {MAGIC!r}")
    check_digest_block(view, position - DIGEST_BLOCK_BYTES, path)
    section = unframe(view[:footer_at], position, path, "manifest")
    if position + _LENGTH_BYTES + len(section) != footer_at:
        raise CorruptFile(path, "manifest", f"{len(section)} bytes at {position} do not end at the footer")
    return section


def _parts(view: memoryview, path: str) -> _Parts:
    parts = parse_message(manifest_parts_pb2.ManifestParts, _section(view, path), path, "manifest")
    fragments = FragmentList.from_messages(parts.fragments, path)
    parts.ClearField("fragments")
    schema = manifest_parts_pb2.ManifestParts()
    schema.CopyFrom(parts)
    schema.DiscardUnknownFields()
    parts.ClearField("fields")
    parts.ClearField("schema_metadata")
    message = parse_message(table_pb2.Manifest, parts.SerializeToString(), path, "manifest")
    return _Parts(message, schema.SerializeToString(), fragments)
