"""Read and write single files with the API of the reference implementation's `lance.file`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.threads import available_cores
from lance_ops.core.versions import FileVersion
from lance_ops.file.page_reading import Extent
from lance_ops.file.reader import FileReader
from lance_ops.file.writer import FileWriter, page_budget
from lance_ops.store import Store, open_store

__all__ = [
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceColumnStatistics",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "PlacedFile",
    "ReaderResults",
    "refuse_namespaces",
    "stable_version",
]


def stable_version() -> str:
    """Return the file version that writers use by default."""
    return FileVersion.parse("stable").value


@dataclass(frozen=True)
class LanceBufferDescriptor:
    """Where a buffer is in the file, in bytes."""

    position: int
    size: int


@dataclass(frozen=True)
class LancePageMetadata:
    """One page: its buffers, and its layout and encodings, outermost first."""

    buffers: list[LanceBufferDescriptor]
    encoding: str


@dataclass(frozen=True)
class LanceColumnMetadata:
    """One column: the buffers that belong to all of it, and its pages."""

    column_buffers: list[LanceBufferDescriptor]
    pages: list[LancePageMetadata]


@dataclass(frozen=True)
class LanceFileMetadata:
    """The metadata of a 2.x file. The version is that of the file's footer, which is 0.3 in a file of version 2.0."""

    schema: pa.Schema
    num_rows: int
    num_data_bytes: int
    num_column_metadata_bytes: int
    num_global_buffer_bytes: int
    global_buffers: list[LanceBufferDescriptor]
    columns: list[LanceColumnMetadata]
    major_version: int
    minor_version: int


@dataclass(frozen=True)
class LanceColumnStatistics:
    """The size of one column's pages."""

    num_pages: int
    size_bytes: int


@dataclass(frozen=True)
class LanceFileStatistics:
    """The size of each column."""

    columns: list[LanceColumnStatistics]


@dataclass(frozen=True)
class PlacedFile:
    """A file in a store that is open already."""

    store: Store
    path: str


class ReaderResults:
    """Rows that were read, as batches or as a table."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self._reader = pa.RecordBatchReader.from_batches(schema, batches)

    def to_batches(self) -> pa.RecordBatchReader:
        """Return a reader of the batches; each batch is read when the caller asks for it."""
        return self._reader

    def to_table(self) -> pa.Table:
        """Return all rows."""
        return self._reader.read_all()


class LanceFileReader:
    """A reader of one data file of version 2.0 to 2.2, or of a 0.1 file that holds its schema."""

    def __init__(
        self,
        path: str | os.PathLike[str] | PlacedFile,
        storage_options: Mapping[str, str] | None = None,
        columns: Iterable[str] | None = None,
        *,
        namespace_client: object | None = None,
        table_id: Iterable[str] | None = None,
    ) -> None:
        """Open the file at a path or URI, to read all columns or the named ones; dots name nested fields."""
        refuse_namespaces(namespace_client, table_id)
        store, name = _store_and_name(path, storage_options)
        self._reader = FileReader(store, name)
        schema = self._reader.schema
        self._projection = schema if columns is None else schema.project(columns)

    def read_all(self, *, batch_size: int = 1024, batch_readahead: int = 16) -> ReaderResults:
        """Read the whole file in batches of `batch_size` rows."""
        return self._read(0, self._reader.num_rows, batch_size)

    def read_range(
        self, start: int, num_rows: int, *, batch_size: int = 1024, batch_readahead: int = 16
    ) -> ReaderResults:
        """Read consecutive rows; raise `InvalidInput` for rows outside the file."""
        if start < 0 or num_rows < 0 or start + num_rows > self._reader.num_rows:
            raise InvalidInput(f"rows {start} to {start + num_rows} of a file of {self._reader.num_rows} rows")
        return self._read(start, start + num_rows, batch_size)

    def take_rows(self, indices: Iterable[int], *, batch_size: int = 1024, batch_readahead: int = 16) -> ReaderResults:
        """Read the rows at these offsets, in the given order; raise `InvalidInput` for an offset outside the file."""
        table = self._reader.take(self._projection, np.fromiter(indices, np.int64))
        return ReaderResults(table.schema, iter(table.combine_chunks().to_batches(max_chunksize=batch_size)))

    def num_rows(self) -> int:
        """Return the number of rows in the file."""
        return self._reader.num_rows

    def metadata(self) -> LanceFileMetadata:
        """Return the metadata of a 2.x file; raise `InvalidInput` for a 0.1 file."""
        reader = self._reader
        encodings = reader.describe()
        columns = []
        for index, described in enumerate(encodings):
            column = reader.column(index)
            pages = [
                LancePageMetadata(_descriptors(page.buffers), " > ".join(names))
                for page, names in zip(column.pages, described, strict=True)
            ]
            columns.append(LanceColumnMetadata(_descriptors(column.buffers), pages))
        major, minor = reader.version.footer
        sections = reader.sections()
        return LanceFileMetadata(
            schema=reader.schema.to_arrow_restored(),
            num_rows=reader.num_rows,
            num_data_bytes=sections.data_bytes,
            num_column_metadata_bytes=sections.column_metadata_bytes,
            num_global_buffer_bytes=sections.global_buffer_bytes,
            global_buffers=_descriptors(reader.global_buffers),
            columns=columns,
            major_version=major,
            minor_version=minor,
        )

    def file_statistics(self) -> LanceFileStatistics:
        """Return how many pages and bytes each column of a 2.x file has; raise `InvalidInput` for a 0.1 file."""
        columns = map(self._reader.column, range(self._reader.num_columns))
        return LanceFileStatistics([LanceColumnStatistics(len(c.pages), c.size_bytes) for c in columns])

    def read_global_buffer(self, index: int) -> bytes:
        """Return a global buffer; raise `InvalidInput` if there is none of this number."""
        return bytes(self._reader.global_buffer(index))

    def _read(self, start: int, stop: int, batch_size: int) -> ReaderResults:
        batches = self._reader.iter_batches(self._projection, start, stop, batch_size, threads=available_cores())
        return ReaderResults(self._projection.to_arrow_restored(), batches)


class LanceFileWriter:
    """A writer of one data file. As a context manager it closes the file, or removes it after an exception."""

    def __init__(
        self,
        path: str | os.PathLike[str] | PlacedFile,
        schema: pa.Schema | None = None,
        *,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        namespace_client: object | None = None,
        table_id: Iterable[str] | None = None,
        max_page_bytes: int | None = None,
    ) -> None:
        """Start a file at a path or URI; `close` makes it visible.

        Without a schema, the writer takes that of the first batch. A page collects 8 MiB of a column, or an even share
        of `data_cache_bytes`, and at most `max_page_bytes`.
        """
        refuse_namespaces(namespace_client, table_id)
        self.closed = False
        self.size_bytes: int | None = None
        """The file's length; None until it is closed."""
        self._store, self._name = _store_and_name(path, storage_options)
        self._version = FileVersion.parse(version or "stable")
        self._cache_bytes = data_cache_bytes
        self._max_page_bytes = max_page_bytes
        self._writer = None if schema is None else self._start(schema)

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows; raise `SchemaMismatch` if they do not fit the schema."""
        if self._writer is None:
            self._writer = self._start(batch.schema)
        self._writer.write_batch(batch)

    def close(self) -> int | None:
        """Finish the file and return its number of rows; a second call returns None.

        Raises `InvalidInput` if there was neither a schema nor a batch.
        """
        if self.closed:
            return None
        if self._writer is None:
            raise InvalidInput(f"{self._store.uri_of(self._name)}: neither a schema nor a batch was given")
        self.closed = True
        written = self._writer.finish()
        self.size_bytes = written.size_bytes
        return written.num_rows

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Add an entry to the metadata of the file's schema; raise as `close` does."""
        self._require_writer().metadata[key] = value

    def add_global_buffer(self, data: bytes) -> int:
        """Write bytes that belong to the file as a whole; return their number, from 1 on. Raise as `close` does."""
        return self._require_writer().add_global_buffer(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif self._writer is not None:
            self._writer.abort()

    def _start(self, schema: pa.Schema) -> FileWriter:
        page_bytes = page_budget(len(schema), self._cache_bytes, self._max_page_bytes)
        return FileWriter(self._store, self._name, Schema.from_arrow(schema), self._version, page_bytes=page_bytes)

    def _require_writer(self) -> FileWriter:
        if self._writer is None:
            raise InvalidInput("the file has no schema yet: give one to the writer, or write a batch first")
        return self._writer


def _store_and_name(
    path: str | os.PathLike[str] | PlacedFile, storage_options: Mapping[str, str] | None
) -> tuple[Store, str]:
    """Return the store of a file's directory, and the file's name in it."""
    if isinstance(path, PlacedFile):
        return path.store, path.path
    text = os.fspath(path)
    directory, slash, name = text.rpartition("/")
    if not name:
        raise InvalidInput(f"{text!r} names no file")
    return open_store(directory or ("/" if slash else "."), storage_options), name


def refuse_namespaces(namespace_client: object | None, table_id: Iterable[str] | None) -> None:
    if namespace_client is not None or table_id is not None:
        raise UnsupportedFeature("a namespace client; give a path and storage options")


def _descriptors(extents: Iterable[Extent]) -> list[LanceBufferDescriptor]:
    return [LanceBufferDescriptor(extent.position, extent.size) for extent in extents]
