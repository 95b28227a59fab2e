"""Write one data file of any version: Arrow batches in, a file out.

Each column collects rows up to the page budget, then encodes and writes them as a page. So memory is bounded by the
page budget times the number of columns, however many rows come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from lance_ops import file
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.json import json_to_storage
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import v0_1, v2_0, v2_1
from lance_ops.file.arrow_values import storage_of
from lance_ops.file.container import FieldWriter, HeldBatch
from lance_ops.file.container_body import ContainerBody
from lance_ops.file.file_body import FileBody
from lance_ops.file.page_reading import Extent
from lance_ops.file.supported_types import check_types
from lance_ops.store import BytesLike, Store

if TYPE_CHECKING:
    from lance_ops.file.reader import FileReader

__all__ = ["DEFAULT_PAGE_BYTES", "FileWriter", "WrittenFile", "page_budget"]

DEFAULT_PAGE_BYTES = 8 * 1024 * 1024
"""Arrow bytes of one column that fill a page."""

_TOTAL_CACHE_BYTES = 256 * 1024 * 1024
"""All columns together collect no more than this; with many columns, each gets smaller pages."""

_LEAST_PAGE_BYTES = 64 * 1024


@dataclass(frozen=True)
class WrittenFile:
    """A finished file as a manifest describes it: `column_indices[i]` is the column of field `fields[i]`."""

    path: str
    num_rows: int
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    major: int
    minor: int
    size_bytes: int


def page_budget(num_columns: int, cache_bytes: int | None = None, max_page_bytes: int | None = None) -> int | None:
    """Return a writer's `page_bytes`: an even share of `cache_bytes` for each column, at most `max_page_bytes`.

    If neither is given, the result is None and the writer decides. Raises `InvalidInput` for sizes out of range.
    """
    if cache_bytes is not None and cache_bytes < 0:
        raise InvalidInput(f"data_cache_bytes must not be negative, not {cache_bytes}")
    if max_page_bytes is not None and max_page_bytes < 1:
        raise InvalidInput(f"max_page_bytes must be positive, not {max_page_bytes}")
    if cache_bytes is None:
        return max_page_bytes
    share = max(1, cache_bytes // max(num_columns, 1))
    return share if max_page_bytes is None else min(share, max_page_bytes)


class FileWriter:
    """One data file being written. `finish` makes it visible; `abort` leaves nothing behind.

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
        dictionaries: v0_1.Dictionaries | None = None,
        batch_offsets: Sequence[int] = (0,),
        durable: bool = True,
    ) -> None:
        """Start a file; raise `UnsupportedFeature` for a column that the version cannot hold.

        Raises `InvalidInput` for encoding options that are not allowed.

        `dictionaries` are those that the files of a 0.1 table share; a single file has its own. `batch_offsets` say
        where the first batches of a 0.1 file begin and end. `durable` is as for `Store.put`.
        """
        if page_bytes is not None and page_bytes < 1:
            raise InvalidInput(f"pages of {page_bytes} bytes")
        check_types(schema, version)
        self.path = path
        self.schema = schema
        self.version = version
        self.metadata = dict(schema.metadata)
        """Metadata of the file's schema; the caller may add to it until `finish`."""
        self.num_rows = 0
        self._written: WrittenFile | None = None
        self._fields = list(schema.fields)
        """The fields that `write_batch` takes: all that are not copied."""
        self._storage = None if schema.has_dictionaries else _storage_without_extensions(schema)
        self._num_copied_rows: int | None = None
        self._page_bytes = page_bytes or _default_page_bytes(schema)
        self._sink = store.open_writer(path, durable=durable)
        try:
            self._body: FileBody
            if version is FileVersion.V0_1:
                self._body = v0_1.V01Body(self._sink, schema, dictionaries or v0_1.Dictionaries(schema), batch_offsets)
            else:
                self._body = ContainerBody(
                    self._sink,
                    schema,
                    version,
                    self._page_bytes,
                    partial(_field_writers, schema, version),
                    _hold_of(schema, version),
                )
        except BaseException:
            self._sink.abort()
            raise

    @property
    def bytes_written(self) -> int:
        """The file's length so far, without the rows of pages that are not full yet."""
        return self._sink.tell()

    def copy_column(self, name: str, reader: FileReader) -> bool:
        """Copy all pages of a column from another file, which has the column under the same field id.

        The caller calls this before the first `write_batch`, whose batches then lack the column, and writes as many
        rows as the other file has. Returns False and does nothing if encoding the values anew would give other pages,
        or larger ones.
        """
        at = self.schema.names.index(name)
        field = self.schema.fields[at]
        if self.num_rows or field not in self._fields:
            return False
        if self._num_copied_rows not in (None, reader.num_rows):
            raise InvalidInput(f"columns of {self._num_copied_rows} and of {reader.num_rows} rows do not make one file")
        columns = file.columns_to_copy(reader, field, self.version, self._page_bytes)
        if columns is None:
            return False
        self._body.copy_columns(at, columns, reader.buffer)
        self._fields.remove(field)
        self._num_copied_rows = reader.num_rows
        return True

    def append_file(self, reader: FileReader) -> None:
        """Append all rows of another file, which has the same fields under the same ids, by copying its pages.

        No value is decoded, and memory holds one buffer of a page at a time. Raises `InvalidInput` for a file whose
        pages do not fit: of another version, with other fields or with blobs.
        """
        columns = file.columns_to_append(reader, self.schema.fields, self.version)
        if columns is None or self._num_copied_rows is not None:
            raise InvalidInput(f"the pages of {reader.path} cannot be appended to {self.path}: their columns differ")
        self._body.append_rows(columns, reader.num_rows, reader.buffer)
        self.num_rows += reader.num_rows

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows. Columns come in the schema's order, under its names.

        Raises `SchemaMismatch` where they differ from the schema; the file can then only be aborted.
        """
        names = [field.name for field in self._fields]
        if batch.schema.names != names:
            given, wanted = ", ".join(batch.schema.names), ", ".join(names)
            raise SchemaMismatch(f"the data has the columns {given}; the schema has {wanted}")
        for part in batch.to_batches() if isinstance(batch, pa.Table) else (batch,):
            if self._storage is not None and part.schema.equals(self._storage):
                columns = part.columns
            else:
                columns = [_storage_column(part, at, field) for at, field in enumerate(self._fields)]
            if part.num_rows:
                self._body.add(columns, part.num_rows)
                self.num_rows += part.num_rows

    def write_buffer(self, data: BytesLike) -> Extent:
        """Write bytes that a column's values refer to by position, as inline blobs are; return where they are."""
        return self._body.write_buffer(data)

    def add_global_buffer(self, data: BytesLike) -> int:
        """Write bytes that belong to the file as a whole; return their number, counted from 1."""
        return self._body.add_global_buffer(data)

    def finish(self) -> WrittenFile:
        """Write the pending rows and the metadata, and make the file visible. A second call returns the same result."""
        if self._written is None:
            written = self._end_body()
            try:
                self._sink.close()
            except BaseException:
                self.abort()
                raise
            self._written = written
        return self._written

    def begin_finish(self) -> tuple[WrittenFile, Callable[[], object]]:
        """Do what `finish` does, perhaps beside the caller, and return a function that waits until the file is visible.

        That function raises the error if the file cannot be written; the file may be there nevertheless.
        """
        written = self._end_body()
        try:
            is_visible = self._sink.begin_close()
        except BaseException:
            self.abort()
            raise
        self._written = written
        return written, is_visible

    def abort(self) -> None:
        """Remove everything written; do nothing after `finish`."""
        if self._written is None:
            self._sink.abort()

    def _end_body(self) -> WrittenFile:
        try:
            if self._num_copied_rows not in (None, self.num_rows):
                raise InvalidInput(f"{self.num_rows} rows beside a copied column of {self._num_copied_rows}")
            fields, column_indices = self._body.finish(self.metadata)
        except BaseException:
            self.abort()
            raise
        numbers = self.version.data_file
        return WrittenFile(self.path, self.num_rows, fields, column_indices, *numbers, self._sink.tell())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.abort()


def _default_page_bytes(schema: Schema) -> int:
    return max(_LEAST_PAGE_BYTES, min(DEFAULT_PAGE_BYTES, _TOTAL_CACHE_BYTES // max(schema.num_leaves, 1)))


def _field_writers(schema: Schema, version: FileVersion) -> Sequence[FieldWriter]:
    if version is FileVersion.V2_0:
        return [v2_0.V20FieldWriter(field) for field in schema.fields]
    return [v2_1.V21FieldWriter(field, version) for field in schema.fields]


def _hold_of(schema: Schema, version: FileVersion) -> Callable[[Sequence[pa.Array]], HeldBatch] | None:
    """Return what holds the first batch of a file, so that a file of one batch is written in one step.

    Raises `InvalidInput` for encoding options that are not allowed.
    """
    if version is FileVersion.V2_0 or not v2_1.fits_single_batch(schema, version):
        return None
    return partial(v2_1.SingleBatch, schema, version)


@lru_cache(maxsize=64)
def _storage_without_extensions(schema: Schema) -> pa.Schema | None:
    """Return the storage types of a schema's columns; None if a batch of these types may still need a conversion."""
    if any(field.holds_json or field.names_extensions for field in schema.fields):
        return None
    return schema.to_arrow_storage()


def _storage_column(batch: pa.RecordBatch, at: int, field: Field) -> pa.Array:
    """Return a column of a batch as its field stores it: JSON as JSONB, extension types as their storage."""
    array = batch.column(at)
    if field.holds_json:
        array = json_to_storage(array, batch.schema.field(at), field.storage_field)
    return storage_of(array, field)
