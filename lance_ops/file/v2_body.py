"""The bytes of a 2.x file, written front to back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.body import FileBody
from lance_ops.file.column_writer import RootWriter
from lance_ops.file.container import ALIGNMENT, Column, Extent, Footer, encode_extents
from lance_ops.file.v2_0 import ArrayRoot
from lance_ops.file.v2_1 import StructuralRoot
from lance_ops.pb import file_pb2
from lance_ops.store import BytesLike, StoreWriter
from lance_ops.wire import metadata_to_pb, schema_to_pb

__all__ = ["V2Body"]

_FULL = 2 / 3
"""A page with this much of its budget is written: `_slices` makes no smaller parts, so none waits to be joined."""

_PAD = bytes([0xFE]) * ALIGNMENT


class V2Body(FileBody):
    """Pages as they fill up; metadata at the end."""

    def __init__(self, sink: StoreWriter, schema: Schema, version: FileVersion, page_bytes: int) -> None:
        self._sink = sink
        self._schema = schema
        self._version = version
        self._page_bytes = page_bytes
        self._full_bytes = page_bytes * _FULL
        self._num_rows = 0
        self._global_buffers: list[Extent] = []
        self._roots: list[RootWriter] = (
            [ArrayRoot(field) for field in schema.fields]
            if version is FileVersion.V2_0
            else [StructuralRoot(field, version) for field in schema.fields]
        )
        self._filling = list(self._roots)

    def copy_columns(self, at: int, columns: Sequence[Column], read: Callable[[Extent], BytesLike]) -> None:
        """Take all rows of a field over from another file, whose buffers `read` reads: `add` is without it from now."""
        root = self._roots[at]
        for writer, column in zip(root.writers, columns, strict=True):
            writer.copy_pages(column.pages, lambda extent: self._write(read(extent)))
        self._filling.remove(root)

    def add(self, columns: Sequence[pa.Array], num_rows: int) -> None:
        if self._num_rows:
            self._let_go()
        for root, column in zip(self._filling, columns, strict=True):
            first_row = self._num_rows
            for part in _slices(column, self._page_bytes):
                root.add(part, first_row)
                first_row += len(part)
                for writer in root.writers:
                    if writer.holds(self._full_bytes):
                        writer.flush(self._write)
        self._num_rows += num_rows

    def write_buffer(self, data: BytesLike) -> Extent:
        return self._write(data)

    def add_global_buffer(self, data: BytesLike) -> int:
        self._global_buffers.append(self._write(data))
        return len(self._global_buffers)

    def finish(self, metadata: Mapping[str, str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        writers = [writer for root in self._roots for writer in root.writers]
        for writer in writers:
            writer.flush(self._write)
        descriptor = file_pb2.FileDescriptor(schema=_fields_to_pb(self._schema), length=self._num_rows)
        if metadata:
            descriptor.schema.metadata.update(metadata_to_pb(metadata))
        description = descriptor.SerializeToString()
        padding, position = self._next_place()
        global_buffers = [Extent(position, len(description)), *self._global_buffers]
        messages = [writer.metadata() for writer in writers]
        columns_start = at = position + len(description)
        columns = []
        for message in messages:
            columns.append(Extent(at, len(message)))
            at += len(message)
        column_table, global_table = encode_extents(columns), encode_extents(global_buffers)
        footer = Footer(columns_start, at, at + len(column_table), len(global_buffers), len(columns), self._version)
        self._sink.write(b"".join([padding, description, *messages, column_table, global_table, footer.encode()]))
        return tuple([writer.field_id for writer in writers]), tuple(range(len(writers)))

    def _let_go(self) -> None:
        """Release the batch before this one: until now its maker held it too, and the last is never copied."""
        for root in self._filling:
            for writer in root.writers:
                writer.let_go()

    def _write(self, data: BytesLike) -> Extent:
        padding, position = self._next_place()
        view = memoryview(data)
        if padding:
            self._sink.write(padding)
        if view.nbytes:
            self._sink.write(view)
        return Extent(position, view.nbytes)

    def _next_place(self) -> tuple[bytes, int]:
        """Return where the next buffer begins, and what stands before it."""
        end = self._sink.tell()
        gap = -end % ALIGNMENT
        return _PAD[:gap], end + gap


@lru_cache(maxsize=64)
def _fields_to_pb(schema: Schema) -> file_pb2.Schema:
    """Describe the fields of a schema; files of one table have the same. Nobody changes the message."""
    return file_pb2.Schema(fields=schema_to_pb(Schema(tuple(field.stored() for field in schema.fields))))


def _slices(column: pa.Array, page_bytes: int) -> list[pa.Array]:
    """Cut a column into runs of rows of about a page each."""
    if not len(column):
        return []
    if column.get_total_buffer_size() <= page_bytes:  # no less than `nbytes`, and known at once
        return [column]
    parts = min(len(column), max(1, round(column.nbytes / page_bytes)))
    rows = -(-len(column) // parts)
    return [column.slice(start, rows) for start in range(0, len(column), rows)]
