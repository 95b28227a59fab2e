"""The container of 0.1 files, opened.

    pages | page table | statistics' pages and page table | [dictionary values] | [manifest] | metadata
    footer: u64 metadata position | u16 major | u16 minor | "LANC"

The manifest and the metadata stand behind a u32 length. The page table has, for every field id from the least to the
greatest in the file and for every batch, an (i64 position, i64 length) pair; fields without pages have zeros.
"""

from __future__ import annotations

import struct

import numpy as np

from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.opened import Batches, OpenFile
from lance_ops.file.source import FileSource
from lance_ops.file.v0_1.page_table import PageTable, read_page_table
from lance_ops.file.v0_1.reader import BatchColumns
from lance_ops.pb import file_pb2, table_pb2
from lance_ops.wire import parse_message, schema_from_pb

__all__ = ["open_v0_1"]

_FOOTER = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")


def open_v0_1(source: FileSource, tail: bytes, schema: Schema | None) -> OpenFile:
    """Read a file's metadata; `schema` is used if the file does not hold its own."""
    name, size = source.name, source.size_bytes
    if size < _FOOTER.size:
        raise CorruptFile(name, "footer", f"the file has {size} bytes, the footer alone takes {_FOOTER.size}")
    (position, *_) = _FOOTER.unpack(tail[-_FOOTER.size :])
    metadata = parse_message(file_pb2.Metadata, _framed(source, position, "metadata"), name, "metadata")
    if metadata.manifest_position:
        framed = _framed(source, metadata.manifest_position, "manifest")
        manifest = parse_message(table_pb2.Manifest, framed, name, "manifest")
        schema = schema_from_pb(manifest.fields, manifest.schema_metadata, name)
    elif schema is None:
        raise InvalidInput(f"{name} does not hold its schema: it can only be read as part of a dataset")
    offsets = _batch_offsets(list(metadata.batch_offsets), name)
    ids = [field.id for field in schema.walk()]
    table = PageTable(min(ids, default=0), np.zeros((0, len(offsets) - 1, 2), np.int64))
    if ids:
        table = read_page_table(source, metadata.page_table_position, min(ids), max(ids), len(offsets) - 1)
    columns = BatchColumns(source, schema, offsets, table, bool(metadata.manifest_position))
    batches = _open_statistics(source, metadata, tuple(offsets.tolist()))
    return OpenFile(FileVersion.V0_1, schema, int(offsets[-1]), columns, (), None, None, batches)


def _open_statistics(source: FileSource, metadata: file_pb2.Metadata, offsets: tuple[int, ...]) -> Batches:
    """Find the statistics of each field; a file need not have any."""
    stated = metadata.statistics
    if not metadata.HasField("statistics") or not stated.schema or not stated.fields:
        return Batches(offsets, {}, None)
    schema = schema_from_pb(stated.schema, {}, source.name)
    found = {int(field.name): field for field in schema.fields if field.name.isdecimal() and field.children}
    last_id = max(*stated.fields, schema.max_field_id)
    table = read_page_table(source, stated.page_table_position, 0, last_id, 1)
    rows = np.array([0, len(offsets) - 1], np.int64)
    return Batches(offsets, found, BatchColumns(source, schema, rows, table, holds_dictionaries=False))


def _framed(source: FileSource, position: int, place: str) -> bytes:
    start = position + _LENGTH.size
    if start > source.size_bytes:
        raise CorruptFile(source.name, place, f"starts at byte {position} of a file of {source.size_bytes}")
    (length,) = _LENGTH.unpack(source.read(position, start))
    if start + length > source.size_bytes:
        raise CorruptFile(source.name, place, f"{length} bytes stated at {position}, {source.size_bytes - start} there")
    return source.read(start, start + length)


def _batch_offsets(offsets: list[int], path: str) -> Int64Array:
    found = np.array(offsets or [0], dtype=np.int64)
    if found[0] != 0 or (np.diff(found) < 0).any():
        raise CorruptFile(path, "metadata", "batch offsets that do not ascend from 0")
    return found
