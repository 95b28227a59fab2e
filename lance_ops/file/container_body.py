"""Write the body of a 2.x file front to back: pages as they fill up, then metadata, tables, checksums and footer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.checksums import ChecksumWriter
from lance_ops.file.container import ALIGNMENT, PADDING, Column, FieldWriter, Footer, HeldBatch, encode_extents
from lance_ops.file.container_file import check_end
from lance_ops.file.file_body import FileBody
from lance_ops.file.leaves import number_leaves
from lance_ops.file.page_reading import Extent
from lance_ops.pb import file_pb2
from lance_ops.store import BytesLike, StoreWriter
from lance_ops.wire import encoded_schema, metadata_to_pb, schema_to_pb

__all__ = ["ContainerBody"]

_FULL = 2 / 3
"""The share of its budget that fills a page. `_slices` cuts no smaller parts, so each of its parts is a page."""

_PAD = bytes([PADDING]) * ALIGNMENT
_SHORT_BYTES = 8 << 10


class ContainerBody(FileBody):
    """The body of a 2.x file; the field writers of its version encode the pages.

    `hold`, if given, takes the first batch unless one of its columns fills a page. The field writers get the batch if
    another one comes.
    """

    def __init__(
        self,
        sink: StoreWriter,
        schema: Schema,
        version: FileVersion,
        page_bytes: int,
        make_writers: Callable[[], Sequence[FieldWriter]],
        hold: Callable[[Sequence[pa.Array]], HeldBatch] | None = None,
    ) -> None:
        self._sink = ChecksumWriter(sink)
        self._schema = schema
        self._version = version
        self._page_bytes = page_bytes
        self._full_bytes = page_bytes * _FULL
        self._num_rows = 0
        self._global_buffers: list[Extent] = []
        self._make_writers = make_writers
        self._hold = hold
        self._held: HeldBatch | None = None
        self._held_columns: Sequence[pa.Array] = ()
        self._fields: Sequence[FieldWriter] | None = None
        self._fields_to_fill: list[FieldWriter] = []
        if hold is None:
            self._writers()  # raises for options that are not allowed

    def copy_columns(self, field_index: int, columns: Sequence[Column], read: Callable[[Extent], BytesLike]) -> None:
        field = self._writers()[field_index]
        for writer, column in zip(field.writers, columns, strict=True):
            writer.copy_pages(column.pages, lambda extent: self.write_buffer(read(extent)))
        self._fields_to_fill.remove(field)

    def append_rows(
        self, columns: Sequence[Sequence[Column]], num_rows: int, read: Callable[[Extent], BytesLike]
    ) -> None:
        for field, copied in zip(self._writers(), columns, strict=True):
            for writer, column in zip(field.writers, copied, strict=True):
                writer.flush(self.write_buffer)
                writer.copy_pages(column.pages, lambda extent: self.write_buffer(read(extent)), self._num_rows)
        self._num_rows += num_rows

    def add(self, columns: Sequence[pa.Array], num_rows: int) -> None:
        if self._hold is not None and self._held is None and self._fields is None and self._fit_pages(columns):
            self._held, self._held_columns = self._hold(columns), columns
            self._num_rows = num_rows
            return
        self._writers()
        if self._num_rows:
            self._release_batch()
        self._fill(columns, self._num_rows)
        self._num_rows += num_rows

    def _fit_pages(self, columns: Sequence[pa.Array]) -> bool:
        """Return whether none of the columns fills a page."""
        return all(column.nbytes < self._full_bytes for column in columns)

    def _writers(self) -> Sequence[FieldWriter]:
        """Return the field writers; the first call makes them, and gives them the batch that is held."""
        if self._fields is None:
            self._fields = self._make_writers()
            self._fields_to_fill = list(self._fields)
            if self._held is not None:
                self._fill(self._held_columns, 0)
                self._held, self._held_columns = None, ()
        return self._fields

    def _fill(self, columns: Sequence[pa.Array], first_row_of_batch: int) -> None:
        for field, column in zip(self._fields_to_fill, columns, strict=True):
            first_row = first_row_of_batch
            for part in _slices(column, self._page_bytes):
                field.add(part, first_row, self.write_buffer)
                first_row += len(part)
                for writer in field.writers:
                    if writer.has_pending(self._full_bytes):
                        writer.flush(self.write_buffer)

    def add_global_buffer(self, data: BytesLike) -> int:
        self._global_buffers.append(self.write_buffer(data))
        return len(self._global_buffers)

    def finish(self, metadata: Mapping[str, str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self._held is not None:
            messages, field_ids = self._held.write_pages(self.write_buffer), number_leaves(self._schema).field_ids
        else:
            writers = [writer for field in self._writers() for writer in field.writers]
            for writer in writers:
                writer.flush(self.write_buffer)
            messages, field_ids = [writer.metadata() for writer in writers], tuple([each.field_id for each in writers])
        descriptor = file_pb2.FileDescriptor(schema=_fields_to_pb(self._schema), length=self._num_rows)
        if metadata:
            descriptor.schema.metadata.update(metadata_to_pb(metadata))
        description = descriptor.SerializeToString()
        position = self._sink.end_pages()
        global_buffers = [Extent(position, len(description)), *self._global_buffers]
        columns_start = at = position + len(description)
        columns = []
        for message in messages:
            columns.append(Extent(at, len(message)))
            at += len(message)
        column_table, global_table = encode_extents(columns), encode_extents(global_buffers)
        footer = Footer(columns_start, at, at + len(column_table), len(global_buffers), len(columns), self._version)
        metadata_bytes, footer_bytes = b"".join([description, *messages, column_table, global_table]), footer.encode()
        check_end(metadata_bytes + footer_bytes, position, self._num_rows, len(messages), "the file being written")
        self._sink.finish(metadata_bytes, footer_bytes)
        return field_ids, tuple(range(len(messages)))

    def write_buffer(self, data: BytesLike) -> Extent:
        padding, position = self._next_position()
        view = memoryview(data)
        if padding and view.nbytes < _SHORT_BYTES:  # to join them costs less than a write of its own
            self._sink.write(b"".join((padding, view)))
        else:
            if padding:
                self._sink.write(padding)
            if view.nbytes:
                self._sink.write(view)
        return Extent(position, view.nbytes)

    def _release_batch(self) -> None:
        """Copy what is pending of the previous batch. It waits until the next batch, so the last one is not copied."""
        for field in self._fields_to_fill:
            for writer in field.writers:
                writer.copy_pending()

    def _next_position(self) -> tuple[bytes, int]:
        """Return the padding before the next buffer, and where the buffer begins."""
        end = self._sink.tell()
        gap = -end % ALIGNMENT
        return _PAD[:gap], end + gap


@lru_cache(maxsize=64)
def _fields_to_pb(schema: Schema) -> file_pb2.Schema:
    """Return a schema's fields as a message that is shared by files of one table and must not be changed."""
    if schema.has_dictionaries or schema.holds_blobs_v2:
        return file_pb2.Schema(fields=schema_to_pb(Schema(tuple(field.stored() for field in schema.fields))))
    message = file_pb2.Schema.FromString(encoded_schema(schema))  # the manifest has the same bytes
    message.ClearField("metadata")
    return message


def _slices(column: pa.Array, page_bytes: int) -> list[pa.Array]:
    """Cut a column into slices of about `page_bytes` each."""
    if not len(column):
        return []
    if column.get_total_buffer_size() <= page_bytes:  # at least `nbytes`, and cheaper
        return [column]
    parts = min(len(column), max(1, round(column.nbytes / page_bytes)))
    rows = -(-len(column) // parts)
    return [column.slice(start, rows) for start in range(0, len(column), rows)]
