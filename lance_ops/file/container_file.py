"""An open 2.x file: its schema and where its columns are; column metadata is read when a column is first used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lance_ops.core.errors import CorruptFile, InvalidInput, UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.file.container import (
    MAX_ROWS,
    Column,
    Footer,
    PlainColumns,
    check_no_overlap,
    decode_column,
    decode_extents,
    decode_plain_columns,
)
from lance_ops.file.open_file import OpenFile, Sections
from lance_ops.file.page_reading import Extent, FileSource, Ranges, SourceBytes
from lance_ops.pb import file_pb2
from lance_ops.wire import parse_message, schema_from_pb, shared_schema

__all__ = ["ContainerFile", "check_end"]


class ContainerFile(OpenFile):
    """What open files of all 2.x versions share; each version numbers and reads its columns."""

    def __init__(self, source: FileSource, tail: bytes) -> None:
        """Read a file's metadata, most of it from `tail`, the file's last bytes."""
        super().__init__(source)
        self._tail = tail
        self._tail_start = source.size_bytes - len(tail)
        self._columns: dict[int, Column] = {}
        self._sizes: dict[int, int] = {}
        name, size = source.name, source.size_bytes
        footer = Footer.decode(tail, size, name)
        self.version = footer.version
        global_table, column_table = self._read([footer.global_extent, footer.column_extent])
        self.global_buffers = decode_extents(global_table, size, name, "global buffer")
        self.schema, self.num_rows = _read_description(self._read(self.global_buffers[:1])[0], name)
        self._column_table, self._column_extents = column_table, decode_extents(column_table, size, name, "column")
        column_bytes = sum([extent.size for extent in self._column_extents])
        global_bytes = sum([extent.size for extent in self.global_buffers])
        self.metadata_bytes = column_bytes + global_bytes
        self._sections = Sections(footer.column_metadata_start - global_bytes, column_bytes, global_bytes)

    def sections(self) -> Sections:
        return self._sections

    def column(self, index: int) -> Column:
        if not 0 <= index < self.num_columns:
            raise InvalidInput(f"{self.path} has {self.num_columns} columns, there is no {index}")
        return self._load_columns([index])[0]

    def _check_num_columns(self) -> None:
        """Raise `CorruptFile` if the file has more or fewer columns than its schema asks for."""
        if self.num_columns != len(self._column_extents):
            reason = f"{len(self._column_extents)} columns where the schema has {self.num_columns}"
            raise CorruptFile(self.path, "schema", reason)

    def _load_columns(self, indices: Sequence[int]) -> list[Column]:
        """Return columns; the metadata of columns that were not used before is read at once and parsed."""
        missing = [index for index in indices if index not in self._columns]
        if missing:
            self._parse_columns(missing, self._read([self._column_extents[index] for index in missing]))
        return [self._columns[index] for index in indices]

    def _load_plain_columns(self, indices: Sequence[int]) -> PlainColumns:
        """Read the metadata of many columns at once, and parse together what can be; it is not kept."""
        starts, sizes = np.frombuffer(self._column_table, "<i8").reshape(-1, 2)[np.array(indices)].T
        found = self._fetch_metadata(Ranges(starts, starts + sizes))
        at = found.locate(starts)
        columns = decode_plain_columns(found.data, at, at + sizes, self.source.size_bytes, self.path)
        self._sizes.update(zip(indices, columns.size_bytes.tolist(), strict=True))
        check_no_overlap(self._sizes.values(), self.source.size_bytes, self.path, "columns")
        return columns

    def _parse_columns(self, indices: Sequence[int], messages: Sequence[bytes]) -> None:
        columns = {
            index: decode_column(data, self.source.size_bytes, self.path, f"column {index}")
            for index, data in zip(indices, messages, strict=True)
        }
        self._sizes.update((index, column.size_bytes) for index, column in columns.items())
        check_no_overlap(self._sizes.values(), self.source.size_bytes, self.path, "columns")
        self._columns.update(columns)  # not before: a handle that finds them here does not check them again

    def _fetch_metadata(self, ranges: Ranges) -> SourceBytes:
        """Return the bytes of ranges, taken from the tail if all of them lie in it."""
        if int(ranges.starts.min()) < self._tail_start:
            return self.source.fetch(ranges)
        return SourceBytes(np.frombuffer(self._tail, np.uint8), np.array([self._tail_start]), np.zeros(1, np.int64))

    def _read(self, extents: Sequence[Extent]) -> list[bytes]:
        """Return the bytes of each extent, taken from the tail if they lie in it."""
        tail, tail_start = self._tail, self._tail_start
        outside = [(position, position + size) for position, size in extents if position < tail_start]
        if not outside:
            return [tail[position - tail_start : position - tail_start + size] for position, size in extents]
        fetched = self.source.fetch(Ranges.of(*outside))
        found = []
        for position, size in extents:
            if position >= tail_start:
                found.append(tail[position - tail_start : position - tail_start + size])
            else:
                found.append(fetched.view(position, position + size).tobytes())
        return found


def check_end(end: bytes, start: int, num_rows: int, num_columns: int, path: str) -> None:
    """Decode the end of a file that is being written, from its description on, as a reader does.

    Raises as a reader does, and `CorruptFile` if a reader would find other numbers of rows or columns.
    """
    size = start + len(end)
    footer = Footer.decode(end, size, path)
    tables = [
        end[extent.position - start : extent.end - start] for extent in (footer.global_extent, footer.column_extent)
    ]
    description = decode_extents(tables[0], size, path, "global buffer")[0]
    _, found_rows = _read_description(end[description.position - start : description.end - start], path)
    found_columns = len(decode_extents(tables[1], size, path, "column"))
    if (found_rows, found_columns) != (num_rows, num_columns):
        reason = f"{found_rows} rows of {found_columns} columns, where {num_rows} of {num_columns} were written"
        raise CorruptFile(path, "footer", reason)


def _read_description(data: bytes, path: str) -> tuple[Schema, int]:
    """Parse global buffer 0: a file's schema and number of rows. Files with equal bytes share the result."""
    try:
        return _cached_description(data)
    except (CorruptFile, UnsupportedFeature):  # raised again with the file's name
        message = _descriptor_from(data, path)
        return schema_from_pb(message.schema.fields, message.schema.metadata, path), message.length


@lru_cache(maxsize=64)
def _cached_description(data: bytes) -> tuple[Schema, int]:
    message = _descriptor_from(data, "")
    return shared_schema(message.schema.SerializeToString(deterministic=True), ""), message.length


def _descriptor_from(data: bytes, path: str) -> file_pb2.FileDescriptor:
    message = parse_message(file_pb2.FileDescriptor, data, path, "global buffer 0")
    if message.length > MAX_ROWS:
        raise CorruptFile(path, "global buffer 0", f"a length of {message.length} rows")
    return message
