"""Reading one data file, of any version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_ops.core.errors import InvalidInput, ReadTooLarge
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.schema import Field, Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.budget import Budget, row_bytes
from lance_ops.file.container import Column, Extent, read_footer_version
from lance_ops.file.decoding_errors import reporting
from lance_ops.file.opened import Batches, Sections
from lance_ops.file.order import reorder
from lance_ops.file.rows import Rows, RowSet, RowSlice
from lance_ops.file.source import FileSource, Ranges, run
from lance_ops.file.v0_1 import BatchColumns, open_v0_1
from lance_ops.file.v2_1 import StructuralColumns
from lance_ops.file.v2_1.layouts import PageLayout
from lance_ops.file.v2_file import open_v2
from lance_ops.store import Store, View

__all__ = ["FileReader", "table_of"]

_TAIL_BYTES = 64 * 1024
"""Read at once when a file is opened; most files' metadata fits, and of a small file everything."""

_MAPPED_TAIL_BYTES = 16 * 1024
"""The same of a mapped file, where looking again costs less than to copy what nobody asks for."""

_LEAST_HELD_BYTES = _TAIL_BYTES
_TIMES_METADATA = 16  # parsed, and as Python objects
_BYTES_BY_HELD_BYTE = 256  # where each chunk of some kilobytes is takes three numbers

_WINDOW_BYTES = 32 * 1024 * 1024
"""Encoded bytes that `iter_batches` decodes at a time."""

_DECODED_BYTES = 4 * _WINDOW_BYTES
"""What they may become in values of fixed width."""


class FileReader:
    """One data file, open for reading; safe to use from several threads.

    Raises `CorruptFile` where bytes contradict each other, `UnsupportedFeature` for what is not read here.
    """

    def __init__(self, store: Store, path: str, size_bytes: int | None = None, *, schema: Schema | None = None) -> None:
        """Read a file's metadata.

        A `size_bytes` other than the file's is an error, but for 0: not recorded. `schema` is that of a 0.1 file which
        does not hold its own, with the fields that are in the file; all others say what they hold.
        """
        tail_bytes = _MAPPED_TAIL_BYTES if store.reads_in_place else _TAIL_BYTES
        self._source, tail = FileSource.with_tail(store, path, size_bytes, tail_bytes)
        self.version = read_footer_version(tail, self._source.name)
        if self.version is FileVersion.V0_1:
            self._file = open_v0_1(self._source, tail, schema)
        else:
            self._file = open_v2(self._source, tail)

    @property
    def schema(self) -> Schema:
        """The file's schema."""
        return self._file.schema

    @property
    def num_rows(self) -> int:
        """Number of rows in the file."""
        return self._file.num_rows

    @property
    def global_buffers(self) -> tuple[Extent, ...]:
        """Where the buffers are that belong to the file as a whole; the first describes it."""
        return self._file.global_buffers

    @property
    def path(self) -> str:
        """The file's full name."""
        return self._source.name

    @property
    def size_bytes(self) -> int:
        """The file's length."""
        return self._source.size_bytes

    @property
    def held_bytes(self) -> int:
        """About how many bytes of memory the open file takes when all of it was read once."""
        sections = self._file.sections
        metadata_bytes = 0 if sections is None else sections.column_metadata_bytes + sections.global_buffer_bytes
        return _LEAST_HELD_BYTES + _TIMES_METADATA * metadata_bytes + self.size_bytes // _BYTES_BY_HELD_BYTE

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Metadata of the file's schema."""
        return dict(self.schema.metadata)

    @property
    def num_columns(self) -> int:
        """Number of columns in the file: leaves in 2.1 and later, all fields before."""
        return self._file.columns.num_columns

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The id of each column's field in the file's schema, which need not be that of the table."""
        return self._file.columns.field_ids

    def global_buffer(self, index: int) -> pa.Buffer:
        """Return a global buffer's bytes; 0 is the file's own description. Raises `InvalidInput` if there is none."""
        if not 0 <= index < len(self.global_buffers):
            raise InvalidInput(f"{self.path} has {len(self.global_buffers)} global buffers, there is no {index}")
        return pa.py_buffer(self._source.read(self.global_buffers[index].position, self.global_buffers[index].end))

    @property
    def is_in_place(self) -> bool:
        """Whether all of the file's bytes can be looked at where they are."""
        return self._source.is_in_place

    def view(self) -> View:
        """Return the bytes of a file that is in place."""
        view = self._source.view()
        assert view is not None
        return view

    def pages(self, fields: Sequence[Field], rows: Rows) -> list[list[list[tuple[PageLayout, Rows]]]]:
        """Return, for each column of each field, the pages with some of these rows, and which of their own those are.

        The file is of 2.1 or later and has the rows. Raises `CorruptFile`, and `InvalidInput` for a field that it does
        not have.
        """
        columns = self._file.columns
        assert isinstance(columns, StructuralColumns)
        columns.expect(fields)
        return [columns.pages(field, rows) for field in fields]

    def buffer(self, extent: Extent) -> pa.Buffer:
        """Return some of the file's bytes: of a mapped file those in the map."""
        found = self._source.fetch(Ranges.of((extent.position, extent.end)))
        return pa.py_buffer(found.view(extent.position, extent.end))

    def read(
        self, schema: Schema | None = None, start: int = 0, stop: int | None = None, *, threads: int = 1
    ) -> pa.Table:
        """Return the rows in `[start, stop)` of the fields asked for, known by their ids; all of them by default.

        The pages of a large read are decoded in `threads` threads.
        """
        last = self.num_rows if stop is None else min(stop, self.num_rows)
        if start < 0 or start > max(last, start):
            raise InvalidInput(f"rows {start} to {stop} of {self.num_rows}")
        return self._read(self.schema if schema is None else schema, RowSlice(start, max(start, last)), threads)

    def take(self, schema: Schema | None, offsets: npt.ArrayLike) -> pa.Table:
        """Return the rows at these offsets, in the order asked for, repeats included.

        Raises `InvalidInput` for an offset outside of the file.
        """
        wanted = np.asarray(offsets)
        if wanted.size and wanted.dtype.kind not in "iu":
            raise InvalidInput(f"row offsets of type {wanted.dtype}")
        wanted = wanted.astype(np.int64).reshape(-1)
        distinct, position = wanted, None
        if len(wanted) > 1 and not (wanted[1:] > wanted[:-1]).all():
            distinct, position = np.unique(wanted, return_inverse=True)
        if len(distinct) and not 0 <= int(distinct[0]) <= int(distinct[-1]) < self.num_rows:
            bounds = f"from {distinct[0]} to {distinct[-1]}"
            raise InvalidInput(f"row offsets {bounds} in a file of {self.num_rows} rows")
        found = self._read(self.schema if schema is None else schema, _as_rows(distinct))
        return found if position is None else reorder(found, position)

    def load(self, schema: Schema) -> None:
        """Read the metadata of columns whose rows will be read."""
        self._file.columns.expect(schema.fields)
        for field in schema.fields:
            self._file.columns.load(field)

    def iter_batches(
        self,
        schema: Schema | None = None,
        start: int = 0,
        stop: int | None = None,
        batch_rows: int = 8192,
        *,
        threads: int = 1,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in `[start, stop)` in batches of `batch_rows` (the last may have fewer).

        A window of some megabytes is decoded at a time, in `threads` threads, so memory does not grow with the file.
        """
        if batch_rows < 1:
            raise InvalidInput(f"batches of {batch_rows} rows")
        projection = self.schema if schema is None else schema
        last = self.num_rows if stop is None else min(stop, self.num_rows)
        window, first = self._window_rows(projection, batch_rows), start
        while first < last:
            try:
                table = self.read(projection, first, min(first + window, last), threads=threads)
            except ReadTooLarge:
                if window == batch_rows:
                    raise
                window = max(1, window // 2 // batch_rows) * batch_rows
                continue
            yield from _batches(table, batch_rows)
            first += window

    def encoded_bytes(self, schema: Schema) -> int:
        """Return how many bytes of the file the fields asked for take, roughly."""
        return self._file.columns.encoded_bytes(schema)

    def describe(self) -> list[list[tuple[str, ...]]]:
        """Name, for each column and page, the layout and the encodings met, outermost first."""
        return [self._file.columns.describe(index) for index in range(self.num_columns)]

    def batch_offsets(self) -> tuple[int, ...]:
        """Return the first row of each batch of a 0.1 file, and the end of the last."""
        return self._batches().offsets

    def batch_statistics(self, field_id: int) -> pa.StructArray | None:
        """Return null_count, min_value and max_value of a field for each batch of a 0.1 file, if it has them.

        Bounds need not be among the values; a null one is unknown.
        """
        batches = self._batches()
        field = batches.statistics.get(field_id)
        if field is None or batches.columns is None or len(batches.offsets) < 2:
            return None
        rows = RowSlice(0, len(batches.offsets) - 1)
        ((steps, build),) = batches.columns.tasks(field, rows, Budget(self.size_bytes))
        return build(run(self._source, steps))

    def dictionary_values(self, field_id: int) -> pa.Array:
        """Return the values that a 0.1 file holds of a dictionary column, which may be fewer than the table's.

        Raises `InvalidInput` for a file or field that has none.
        """
        columns, field = self._file.columns, self.schema.by_id(field_id)
        if not isinstance(columns, BatchColumns) or field is None or not field.is_dictionary:
            raise InvalidInput(f"{self.path} has no dictionary of a field {field_id}")
        return run(self._source, [columns.dictionary_values(field_id)])[0]

    def _batches(self) -> Batches:
        if self._file.batches is None:
            raise InvalidInput(f"{self.path} is of version {self.version.value}: only 0.1 files have batches")
        return self._file.batches

    def sections(self) -> Sections:
        """Return how many bytes each part of a 2.x file takes."""
        if self._file.sections is None:
            raise self._no_columns()
        return self._file.sections

    def column(self, index: int) -> Column:
        """Return one column's pages and where their buffers are, of a 2.x file.

        Raises `InvalidInput` if there is none.
        """
        if self._file.load_columns is None:
            raise self._no_columns()
        if not 0 <= index < self.num_columns:
            raise InvalidInput(f"{self.path} has {self.num_columns} columns, there is no {index}")
        return self._file.load_columns([index])[0]

    def _no_columns(self) -> InvalidInput:
        return InvalidInput(f"{self.path} is of version {self.version.value}: it has no column metadata")

    def _read(self, projection: Schema, rows: Rows, threads: int = 1) -> pa.Table:
        budget = Budget(self.size_bytes)
        with reporting(self.path, "schema"):
            budget.expect(rows.count, _row_bytes(projection))
        self._file.columns.expect(projection.fields)
        chunks = [
            (at, *chunk)
            for at, field in enumerate(projection.fields)
            for chunk in self._file.columns.tasks(field, rows, budget)
        ]
        steps = [step for _, tasks, _ in chunks for step in tasks]
        results = run(self._source, steps, threads)
        arrays: list[list[pa.Array]] = [[] for _ in projection.fields]
        done = 0
        for at, tasks, build in chunks:
            arrays[at].append(build(results[done : done + len(tasks)]))
            done += len(tasks)
        return table_of(projection, arrays, rows.count, self.path)

    def _window_rows(self, projection: Schema, batch_rows: int) -> int:
        """Return how many rows to decode at a time: whole batches, about `_WINDOW_BYTES` of them."""
        size = self.encoded_bytes(projection)
        rows = self.num_rows * _WINDOW_BYTES // max(size, 1)
        with reporting(self.path, "schema"):
            rows = min(rows, _DECODED_BYTES // max(_row_bytes(projection), 1))
        return max(1, min(rows, 1 << 24) // batch_rows) * batch_rows


def table_of(projection: Schema, arrays: Sequence[Sequence[pa.Array]], num_rows: int, path: str) -> pa.Table:
    """Return a table of the fields' arrays, each in parts, with their extension types; `path` is named in errors."""
    with reporting(path, "schema"):
        storage, wanted = projection.to_arrow_storage(), projection.to_arrow_restored()
    columns = [
        pa.chunked_array(parts, field.arrow_type) for parts, field in zip(arrays, projection.fields, strict=True)
    ]
    if not columns:
        return pa.Table.from_batches([_without_columns(num_rows).replace_schema_metadata(storage.metadata)])
    table = pa.Table.from_arrays(columns, schema=storage)
    if wanted is storage:
        return table
    for at, (field, stored) in enumerate(zip(wanted, storage, strict=True)):
        if field.type != stored.type:
            table = table.set_column(at, field, table.column(at).cast(field.type))  # copies nothing
    return table


def _as_rows(ascending: Int64Array) -> Rows:
    if len(ascending) and int(ascending[-1]) - int(ascending[0]) + 1 == len(ascending):
        return RowSlice(int(ascending[0]), int(ascending[-1]) + 1)
    return RowSet(ascending)


def _row_bytes(projection: Schema) -> int:
    return sum(row_bytes(field.arrow_type) for field in projection.fields)


def _without_columns(num_rows: int) -> pa.RecordBatch:
    """Return rows of no columns; Arrow's other ways to make them forget how many they are."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), num_rows, [None]))


def _batches(table: pa.Table, batch_rows: int) -> Iterator[pa.RecordBatch]:
    if not table.num_columns:
        for first in range(0, table.num_rows, batch_rows):
            rows = min(batch_rows, table.num_rows - first)
            yield _without_columns(rows)
        return
    whole = all(column.num_chunks <= 1 for column in table.columns)
    for first in range(0, table.num_rows, batch_rows):
        part = table.slice(first, batch_rows)
        yield from (part if whole else part.combine_chunks()).to_batches()
