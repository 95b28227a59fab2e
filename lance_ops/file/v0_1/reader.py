"""Open 0.1 files: schema, batches, page table and statistics.

    pages | page table | statistics' pages and page table | [dictionary values] | [manifest] | metadata
    checksums of all these bytes                    (files of this library; see `file.checksums.block_table`)
    footer: u64 metadata position | u16 major | u16 minor | "LANC"

Manifest and metadata are messages, each after a u32 length. The page table has an (i64 position, i64 length) pair for
every field id, from the least to the greatest in the file, and every batch; fields without pages have zeros.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.open_file import ColumnPart, OpenFile
from lance_ops.file.page_reading import Budget, FileSource, RowSelection, RowSlice, run_all
from lance_ops.file.v0_1.batch_columns import BatchColumns
from lance_ops.file.v0_1.page_table import PageTable, read_page_table
from lance_ops.pb import file_pb2, table_pb2
from lance_ops.wire import parse_message, schema_from_pb

__all__ = ["V01File"]

_FOOTER = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class _Statistics:
    """The statistics of some fields, by field id: each is a struct column with one row for every batch."""

    fields: Mapping[int, Field]
    columns: BatchColumns


class V01File(OpenFile):
    """An open file of version 0.1."""

    version = FileVersion.V0_1

    def __init__(self, source: FileSource, tail: bytes, schema: Schema | None) -> None:
        """Read a file's metadata; `schema` is used if the file does not hold its own."""
        super().__init__(source)
        name, size = source.name, source.size_bytes
        if size < _FOOTER.size:
            raise CorruptFile(name, "footer", f"the file has {size} bytes, the footer alone takes {_FOOTER.size}")
        (position, *_) = _FOOTER.unpack(tail[-_FOOTER.size :])
        metadata = parse_message(file_pb2.Metadata, _framed(source, position, "metadata"), name, "metadata")
        holds_schema = bool(metadata.manifest_position)
        if holds_schema:
            framed = _framed(source, metadata.manifest_position, "manifest")
            manifest = parse_message(table_pb2.Manifest, framed, name, "manifest")
            schema = schema_from_pb(manifest.fields, manifest.schema_metadata, name)
        elif schema is None:
            raise InvalidInput(f"{name} does not hold its schema: it can only be read as part of a dataset")
        self.schema = schema
        offsets = _batch_offsets(list(metadata.batch_offsets), name)
        self.num_rows = int(offsets[-1])
        ids = [field.id for field in schema.walk()]
        table = PageTable(min(ids, default=0), np.zeros((0, len(offsets) - 1, 2), np.int64))
        if ids:
            table = read_page_table(source, metadata.page_table_position, min(ids), max(ids), len(offsets) - 1)
        self._columns = BatchColumns(source, schema, offsets, table, holds_dictionaries=holds_schema)
        self.field_ids = self._columns.field_ids
        self._batch_offsets = tuple(offsets.tolist())
        self._statistics = _open_statistics(source, metadata, len(offsets) - 1)

    def load_metadata(self, field: Field) -> None:
        """Do nothing: columns have no metadata of their own."""

    def column_parts(self, field: Field, rows: RowSelection, budget: Budget) -> list[ColumnPart]:
        return self._columns.parts(field, rows, budget)

    def encoded_bytes(self, schema: Schema) -> int:
        wanted = sum(1 for _ in schema.walk())
        return self.source.size_bytes * wanted // max(self.num_columns, 1)

    def describe(self, index: int) -> list[tuple[str, ...]]:
        return self._columns.describe(index)

    def batch_offsets(self) -> tuple[int, ...]:
        return self._batch_offsets

    def batch_statistics(self, field_id: int) -> pa.StructArray | None:
        statistics = self._statistics
        if statistics is None or field_id not in statistics.fields or len(self._batch_offsets) < 2:
            return None
        rows = RowSlice(0, len(self._batch_offsets) - 1)
        (part,) = statistics.columns.parts(statistics.fields[field_id], rows, Budget(self.source.size_bytes))
        return part.to_array(run_all(self.source, part.steps))

    def dictionary_values(self, field_id: int) -> pa.Array:
        field = self.schema.by_id(field_id)
        if field is None or not field.is_dictionary:
            return super().dictionary_values(field_id)
        return run_all(self.source, [self._columns.dictionary_values(field_id)])[0]


def _open_statistics(source: FileSource, metadata: file_pb2.Metadata, num_batches: int) -> _Statistics | None:
    """Find the statistics of each field; None if the file has none."""
    stated = metadata.statistics
    if not metadata.HasField("statistics") or not stated.schema or not stated.fields:
        return None
    schema = schema_from_pb(stated.schema, {}, source.name)
    fields = {int(field.name): field for field in schema.fields if field.name.isdecimal() and field.children}
    last_id = max(*stated.fields, schema.max_field_id)
    table = read_page_table(source, stated.page_table_position, 0, last_id, 1)
    one_batch = np.array([0, num_batches], np.int64)
    return _Statistics(fields, BatchColumns(source, schema, one_batch, table, holds_dictionaries=False))


def _framed(source: FileSource, position: int, place: str) -> bytes:
    """Read the bytes after a u32 length."""
    start = position + _LENGTH.size
    if start > source.size_bytes:
        raise CorruptFile(source.name, place, f"starts at byte {position} of a file of {source.size_bytes}")
    (length,) = _LENGTH.unpack(source.read(position, start))
    if start + length > source.size_bytes:
        raise CorruptFile(source.name, place, f"{length} bytes stated at {position}, {source.size_bytes - start} there")
    return source.read(start, start + length)


def _batch_offsets(offsets: Sequence[int], path: str) -> Int64Array:
    found = np.array(offsets or [0], dtype=np.int64)
    if found[0] != 0 or (np.diff(found) < 0).any():
        raise CorruptFile(path, "metadata", "batch offsets that do not ascend from 0")
    return found
