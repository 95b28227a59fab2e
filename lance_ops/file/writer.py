"""Writing one data file of version 2.1 or 2.2.

Batches are cut into leaves as they come; each leaf collects rows up to a page's budget and is then encoded and
written, so that memory is bounded by the budget times the number of leaves, however long the stream is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import InvalidInput, SchemaMismatch, UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.options import EncodingOptions
from lance_ops.file.assemble import concat_rows
from lance_ops.file.columns import Leaf, is_blob, leaves_of, leaves_of_field
from lance_ops.file.container import ALIGNMENT, Column, Extent, Footer, Page, encode_column, encode_extents
from lance_ops.file.layouts.contract import EncodedPage, LeafRows, PageChoice
from lance_ops.file.page_encoder import encode_blob_page, encode_page
from lance_ops.file.pages import PAGE_LAYOUT_URL
from lance_ops.file.shred import shred, storage_of
from lance_ops.pb import file_pb2
from lance_ops.store.contract import BytesLike, Store
from lance_ops.wire.fields import metadata_to_pb, schema_to_pb

__all__ = ["DEFAULT_PAGE_BYTES", "FileWriter", "WrittenFile"]

DEFAULT_PAGE_BYTES = 8 * 1024 * 1024
"""Arrow bytes of one leaf that make a page."""

_TOTAL_CACHE_BYTES = 256 * 1024 * 1024
"""With many columns each gets a smaller page, so that all of them together hold no more than this."""

_LEAST_PAGE_BYTES = 64 * 1024

_COLUMN_ENCODING_URL = "/lance.encodings.ColumnEncoding"
_PLAIN_COLUMN = b"\n\x00"
"""A column encoding whose one field, an empty message, says that there is nothing to say."""

_PAD = bytes([0xFE]) * ALIGNMENT


@dataclass(frozen=True)
class WrittenFile:
    """A finished file, as a manifest describes it: which field is in which column."""

    path: str
    num_rows: int
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    major: int
    minor: int
    size_bytes: int


class FileWriter:
    """One data file, being written; it appears with `finish` and leaves nothing after `abort`.

    As a context manager it aborts on an exception and finishes otherwise.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        schema: Schema,
        version: FileVersion = FileVersion.V2_2,
        *,
        page_bytes: int | None = None,
    ) -> None:
        if version < FileVersion.V2_1:
            raise UnsupportedFeature(f"writing file version {version.value}")
        if page_bytes is not None and page_bytes < 1:
            raise InvalidInput(f"pages of {page_bytes} bytes")
        self.path = path
        self.schema = schema
        self.version = version
        self.metadata = dict(schema.metadata)
        """Metadata of the file's schema; may grow until `finish`."""
        self.num_rows = 0
        _check_types(schema, version)
        leaves = leaves_of(schema)
        self._num_leaves = {field.id: sum(1 for _ in leaves_of_field(field)) for field in schema.fields}
        share = max(_LEAST_PAGE_BYTES, min(DEFAULT_PAGE_BYTES, _TOTAL_CACHE_BYTES // max(len(leaves), 1)))
        self._page_bytes = share if page_bytes is None else page_bytes
        self._leaves = [
            _LeafWriter(leaf, PageChoice(version, EncodingOptions.from_metadata(leaf.field.metadata)))
            for leaf in leaves
        ]
        self._global_buffers: list[Extent] = []
        self._written: WrittenFile | None = None
        self._sink = store.open_writer(path)

    @property
    def bytes_written(self) -> int:
        """The file's length so far; rows whose page is not full yet are not in it."""
        return self._sink.tell()

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows. Columns come in the schema's order, under its names.

        Raises `SchemaMismatch` where they differ from the schema; the file can then only be aborted.
        """
        if isinstance(batch, pa.Table):
            self._check_names(batch.schema.names)
            for part in batch.to_batches():
                self.write_batch(part)
            return
        self._check_names(batch.schema.names)
        columns = [storage_of(array, field) for array, field in zip(batch.columns, self.schema.fields, strict=True)]
        if not batch.num_rows:
            return
        writers = iter(self._leaves)
        for column, field in zip(columns, self.schema.fields, strict=True):
            below = list(islice(writers, self._num_leaves[field.id]))
            for part in _slices(column, self._page_bytes):
                for writer, rows in zip(below, shred(field, part), strict=True):
                    writer.add(rows)
                    if writer.pending_bytes >= self._page_bytes:
                        self._flush(writer)
        for writer in self._leaves:
            writer.let_go()
        self.num_rows += batch.num_rows

    def add_global_buffer(self, data: BytesLike) -> int:
        """Write some bytes for the file as a whole and return their number; 0 is the file's own description."""
        self._global_buffers.append(self._write(data))
        return len(self._global_buffers)

    def finish(self) -> WrittenFile:
        """Write what is pending and the metadata, and make the file visible. A second call returns the same."""
        if self._written is not None:
            return self._written
        try:
            self._written = self._finish()
        except BaseException:
            self.abort()
            raise
        return self._written

    def abort(self) -> None:
        """Drop everything written. Does nothing after `finish`."""
        if self._written is None:
            self._sink.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.abort()

    def _finish(self) -> WrittenFile:
        for writer in self._leaves:
            self._flush(writer)
        descriptor = file_pb2.FileDescriptor(
            schema=file_pb2.Schema(fields=schema_to_pb(self.schema), metadata=metadata_to_pb(self.metadata)),
            length=self.num_rows,
        )
        global_buffers = [self._write(descriptor.SerializeToString()), *self._global_buffers]
        columns_start = self._sink.tell()
        columns = []
        for writer in self._leaves:
            message = encode_column(Column(tuple(writer.pages), (), _PLAIN_COLUMN), _COLUMN_ENCODING_URL)
            columns.append(Extent(self._sink.tell(), len(message)))
            self._sink.write(message)
        column_table = self._sink.tell()
        self._sink.write(encode_extents(columns))
        global_table = self._sink.tell()
        self._sink.write(encode_extents(global_buffers))
        footer = Footer(columns_start, column_table, global_table, len(global_buffers), len(columns), self.version)
        self._sink.write(footer.encode())
        size = self._sink.tell()
        self._sink.close()
        major, minor = self.version.data_file
        fields = tuple(writer.leaf.field.id for writer in self._leaves)
        return WrittenFile(self.path, self.num_rows, fields, tuple(range(len(fields))), major, minor, size)

    def _check_names(self, names: list[str]) -> None:
        if names != self.schema.names:
            given, wanted = ", ".join(names), ", ".join(self.schema.names)
            raise SchemaMismatch(f"the data has the columns {given}; the schema has {wanted}")

    def _flush(self, writer: _LeafWriter) -> None:
        for page in writer.drain(self._write):
            buffers = tuple(self._write(buffer) for buffer in page.buffers)
            writer.record(page, buffers)

    def _write(self, data: BytesLike) -> Extent:
        gap = -self._sink.tell() % ALIGNMENT
        if gap:
            self._sink.write(_PAD[:gap])
        position = self._sink.tell()
        view = memoryview(data)
        if view.nbytes:
            self._sink.write(view)
        return Extent(position, view.nbytes)


class _LeafWriter:
    """The rows of one leaf that make its next page, and its pages so far."""

    def __init__(self, leaf: Leaf, choice: PageChoice) -> None:
        self.leaf = leaf
        self.pages: list[Page] = []
        self.pending_bytes = 0
        self._choice = choice
        self._pending: list[LeafRows] = []
        self._num_own = 0
        self._num_rows = 0

    def add(self, rows: LeafRows) -> None:
        self._pending.append(rows)
        self.pending_bytes += rows.values.nbytes + sum(8 * layer.length for layer in rows.layers)

    def let_go(self) -> None:
        """Copy what is pending, so that it does not hold the whole batch it came with."""
        for index in range(self._num_own, len(self._pending)):
            self._pending[index] = self._pending[index].copy()
        self._num_own = len(self._pending)

    def drain(self, write: Callable[[memoryview], Extent]) -> list[EncodedPage]:
        """Encode what is pending; `write` puts bytes that stand outside of pages into the file."""
        if not self._pending:
            return []
        pending = self._pending
        self._pending, self._num_own, self.pending_bytes = [], 0, 0
        if is_blob(self.leaf.field):
            return [encode_blob_page(concat_rows(pending), self._choice, write)]
        if pt.is_dictionary(self.leaf.arrow_type):
            return [encode_page(rows, self._choice) for rows in _with_common_keys(pending)]
        return [encode_page(concat_rows(pending), self._choice)]

    def record(self, page: EncodedPage, buffers: tuple[Extent, ...]) -> None:
        """Remember where a page was written."""
        encoding = page.description.SerializeToString()
        self.pages.append(Page(page.length, buffers, self._num_rows, PAGE_LAYOUT_URL, encoding))
        self._num_rows += page.length // self.leaf.elements_per_row


def _check_types(schema: Schema, version: FileVersion) -> None:
    """Refuse what readers of the version do not expect in it."""
    if version >= FileVersion.V2_2:
        return
    for field in schema.walk():
        if field.logical_type == "map":
            raise UnsupportedFeature(f"a map in file version {version.value}", f"column {field.name!r}")
        if field.children and field.logical_type.startswith("fixed_size_list:"):
            raise UnsupportedFeature(
                f"a fixed-size list of structs in file version {version.value}", f"column {field.name!r}"
            )


def _with_common_keys(parts: list[LeafRows]) -> list[LeafRows]:
    """Join rows of a dictionary column; leave them apart where one dictionary has more entries than keys."""
    try:
        return [concat_rows(parts)]
    except pa.ArrowInvalid:
        return parts


def _slices(column: pa.Array, page_bytes: int) -> list[pa.Array]:
    """Cut a column into runs of rows of about a page each."""
    parts = min(len(column), max(1, round(column.nbytes / page_bytes)))
    rows = -(-len(column) // parts)
    return [column.slice(start, rows) for start in range(0, len(column), rows)]
