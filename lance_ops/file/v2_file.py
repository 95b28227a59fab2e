"""Opening a 2.x file: its schema and where its columns are; column metadata is read when a column is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from lance_ops.core.errors import CorruptFile
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.container import MAX_ROWS, Column, Extent, Footer, check_apart, decode_column, decode_extents
from lance_ops.file.opened import OpenFile, Sections
from lance_ops.file.source import FileSource, Ranges
from lance_ops.file.v2_0 import ArrayColumns
from lance_ops.file.v2_1 import StructuralColumns
from lance_ops.pb import file_pb2
from lance_ops.wire import parse_message, schema_from_pb

__all__ = ["open_v2"]


def open_v2(source: FileSource, tail: bytes) -> OpenFile:
    """Read a file's metadata, most of it from the `tail` that was read already."""
    return _Opener(source, tail).open()


def _describe(data: bytes, path: str) -> tuple[Schema, int]:
    """Read a file's schema and its number of rows; files of one table share what is made of the same."""
    try:
        return _described(data)
    except CorruptFile:  # said again with the file's name
        message = _descriptor_from(data, path)
        return schema_from_pb(message.schema.fields, message.schema.metadata, path), message.length


@lru_cache(maxsize=64)
def _described(data: bytes) -> tuple[Schema, int]:
    message = _descriptor_from(data, "")
    return _shared_schema(message.schema.SerializeToString(deterministic=True)), message.length


def _descriptor_from(data: bytes, path: str) -> file_pb2.FileDescriptor:
    message = parse_message(file_pb2.FileDescriptor, data, path, "global buffer 0")
    if message.length > MAX_ROWS:
        raise CorruptFile(path, "global buffer 0", f"a length of {message.length} rows")
    return message


@lru_cache(maxsize=64)
def _shared_schema(data: bytes) -> Schema:
    message = file_pb2.Schema.FromString(data)
    return schema_from_pb(message.fields, message.metadata, "")


class _Opener:
    """Reads metadata; lives on as what loads columns."""

    def __init__(self, source: FileSource, tail: bytes) -> None:
        self._source = source
        self._tail = tail
        self._tail_start = source.size_bytes - len(tail)
        self._columns: dict[int, Column] = {}
        self._sizes: dict[int, int] = {}
        self._column_extents: tuple[Extent, ...] = ()

    def open(self) -> OpenFile:
        name, size = self._source.name, self._source.size_bytes
        footer = Footer.decode(self._tail, size, name)
        global_table, column_table = self._read([footer.global_extent, footer.column_extent])
        global_buffers = decode_extents(global_table, size, name, "global buffer")
        schema, num_rows = _describe(self._read(global_buffers[:1])[0], name)
        self._column_extents = decode_extents(column_table, size, name, "column")
        kind = StructuralColumns if footer.version >= FileVersion.V2_1 else ArrayColumns
        columns = kind(name, schema, num_rows, size, self.load_columns)
        if columns.num_columns != len(self._column_extents):
            reason = f"{len(self._column_extents)} columns where the schema has {columns.num_columns}"
            raise CorruptFile(name, "schema", reason)
        global_bytes = sum([extent.size for extent in global_buffers])
        metadata_bytes = sum([extent.size for extent in self._column_extents])
        sections = Sections(footer.column_metadata_start - global_bytes, metadata_bytes, global_bytes)
        return OpenFile(footer.version, schema, num_rows, columns, global_buffers, self.load_columns, sections, None)

    def load_columns(self, indices: Sequence[int]) -> list[Column]:
        """Return columns, parsing the metadata of those that are met for the first time."""
        missing = [index for index in indices if index not in self._columns]
        if missing:
            extents = [self._column_extents[index] for index in missing]
            for index, data in zip(missing, self._read(extents), strict=True):
                place = f"column {index}"
                self._columns[index] = decode_column(data, self._source.size_bytes, self._source.name, place)
                self._sizes[index] = self._columns[index].size_bytes
            check_apart(self._sizes.values(), self._source.size_bytes, self._source.name, "columns")
        return [self._columns[index] for index in indices]

    def _read(self, extents: Sequence[Extent]) -> list[bytes]:
        """Return some bytes each, from the tail where they are in it."""
        outside = [(extent.position, extent.end) for extent in extents if extent.position < self._tail_start]
        fetched = self._source.fetch(Ranges.of(*outside)) if outside else None
        found = []
        for position, size in extents:
            if fetched is None or position >= self._tail_start:
                at = position - self._tail_start
                found.append(self._tail[at : at + size])
            else:
                found.append(fetched.view(position, position + size).tobytes())
        return found
