"""Read one data file of any version: rows in, Arrow tables out, fields known by their ids."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from copy import copy
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_ops.core.errors import CorruptFile, InvalidInput, ReadTooLarge, UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.schema import Field, Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import v0_1, v2_0
from lance_ops.file.arrow_values import reorder
from lance_ops.file.checksums import BlockChecks, find_table
from lance_ops.file.container import Column
from lance_ops.file.decoded_table import batches_of, table_of
from lance_ops.file.open_file import EqualPart, LeafPage, OpenFile, Sections
from lance_ops.file.page_reading import (
    Budget,
    Extent,
    FileSource,
    Ranges,
    RowSelection,
    RowSet,
    RowSlice,
    Steps,
    naming_place,
    row_bytes,
    run_all,
)
from lance_ops.file.v2_1 import DECODED_FILES, V21File
from lance_ops.store import Store, View
from lance_ops.wire import MAGIC

__all__ = ["FileReader"]

_TAIL_BYTES = 64 * 1024
"""The last bytes of a file, read when it is opened: they hold most files' metadata, and all of a small file."""

_MAPPED_TAIL_BYTES = 16 * 1024
"""The same for a mapped file, where a second read costs less than copying bytes that nobody needs."""

_LEAST_MEMORY_BYTES = _TAIL_BYTES

_WINDOW_BYTES = 32 * 1024 * 1024
"""Encoded bytes that `iter_batches` decodes at a time."""

_DECODED_BYTES = 4 * _WINDOW_BYTES
"""The most bytes of fixed-width values that `iter_batches` decodes at a time."""

_VERSION = struct.Struct("<HH4s")


class FileReader:
    """One data file, open for reading; several threads may use it.

    Raises `CorruptFile` for bytes that contradict each other, and `UnsupportedFeature` for features that this library
    does not read.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        size_bytes: int | None = None,
        *,
        schema: Schema | None = None,
        verifies: bool = False,
        view: View | None = None,
        whole: bool = False,
    ) -> None:
        """Read a file's metadata, and verify it if the file has checksums.

        Raises `CorruptFile` if `size_bytes` is neither the file's size nor 0, which means that no size is recorded.
        `schema` describes a 0.1 file that does not hold its own schema; all other files hold theirs. With `verifies`,
        every later read verifies its pages too. `view` has the file's bytes if the caller has read them in place.
        `whole` says that most of the file will be read: a small remote file is then read by one request.
        """
        if view is None and store.reads_in_place:
            view = store.view(path)
        # What a verifying reader shares was verified when it was decoded.
        identity = None if view is None or view.identity is None else (view.identity, verifies)
        self._file: OpenFile
        if view is not None and (known := DECODED_FILES.find(identity)) is not None:
            self._source = FileSource(store, path, size_bytes, actual=view.buffer.size)
            self._checked_source = self._source.with_checks_of(known.source)
            if verifies:
                self._source = self._checked_source
            self.version, self._file = known.version, known.read_from(self._checked_source)
            return
        tail_bytes = _MAPPED_TAIL_BYTES if store.reads_in_place else _TAIL_BYTES
        self._source, tail = FileSource.with_tail(store, path, size_bytes, tail_bytes, view, whole=whole)
        self._checked_source, tail = _with_checks(self._source, tail)
        if verifies:
            self._source = self._checked_source
        self.version = _read_version(tail, self._source.name)
        if self.version is FileVersion.V0_1:
            self._file = v0_1.V01File(self._checked_source, tail, schema)
        elif self.version is FileVersion.V2_0:
            self._file = v2_0.V20File(self._checked_source, tail)
        else:
            self._file = DECODED_FILES.open(identity, self._checked_source, tail)

    def verifying(self) -> FileReader:
        """Return a reader of the same open file whose reads verify the blocks that they touch, each block once.

        A file without checksums is read as it is.
        """
        reader = copy(self)
        reader._source = self._checked_source.verifying_anew()
        if isinstance(self._file, V21File):
            reader._file = self._file.read_anew(reader._source)
        return reader

    @property
    def has_checksums(self) -> bool:
        """Whether the file has checksums, so that `verifying` has an effect."""
        return self._checked_source.has_checks

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
        """Where the global buffers are; the first holds the schema and the number of rows. A 0.1 file has none."""
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
    def memory_bytes(self) -> int:
        """About how many bytes of memory the open file takes after all of it has been read once."""
        return max(_LEAST_MEMORY_BYTES, self._source.kept_bytes) + self._file.decoded_bytes

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Metadata of the file's schema."""
        return dict(self.schema.metadata)

    @property
    def num_columns(self) -> int:
        """Number of columns in the file: leaves in 2.1 and later, all fields before."""
        return self._file.num_columns

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The id of each column's field in the file's own schema, whose ids may differ from the table's."""
        return self._file.field_ids

    def global_buffer(self, index: int) -> pa.Buffer:
        """Return a global buffer's bytes; raise `InvalidInput` if there is none of this number."""
        if not 0 <= index < len(self.global_buffers):
            raise InvalidInput(f"{self.path} has {len(self.global_buffers)} global buffers, there is no {index}")
        return pa.py_buffer(self._source.read(self.global_buffers[index].position, self.global_buffers[index].end))

    @property
    def source(self) -> FileSource:
        """The file's bytes, verified if this reader verifies."""
        return self._source

    @property
    def is_in_place(self) -> bool:
        """Whether the file is mapped or in memory, so that its bytes are read without a copy."""
        return self._source.is_in_place

    def view(self, read: View | None = None) -> View:
        """Return all bytes of a file that is in place: those in `read`, if the caller has just read them.

        Raises `CorruptFile` if they are not as many as when the file was opened.
        """
        view = self._source.view(read)
        assert view is not None
        return view

    def copy_in_place(self, view: View, ranges: Ranges, out: Uint8Array, places: Int64Array) -> None:
        """Copy ranges of a file that is in place to their places in `out`, and verify them if the reader verifies."""
        self._source.copy_in_place(view, ranges, out, places)

    def pages(self, fields: Sequence[Field], rows: RowSelection) -> list[list[list[tuple[LeafPage, RowSelection]]]]:
        """Return, for each leaf of each field, the pages that hold some of the rows, and those rows of the page.

        The caller has checked that the rows are in the file. Raises `CorruptFile`, and `InvalidInput` for a field that
        the file does not have and for a file older than 2.1.
        """
        return self._file.pages(fields, rows)

    def buffer(self, extent: Extent) -> pa.Buffer:
        """Return the bytes of an extent, without a copy if the file is in place."""
        found = self._source.fetch(Ranges.of((extent.position, extent.end)))
        return pa.py_buffer(found.view(extent.position, extent.end))

    def whole(self) -> pa.Buffer:
        """Return all bytes of the file, verified if this reader verifies."""
        return self.buffer(Extent(0, self.size_bytes))

    def read(
        self,
        schema: Schema | None = None,
        start: int = 0,
        stop: int | None = None,
        *,
        threads: int = 1,
        budget: Budget | None = None,
    ) -> pa.Table:
        """Return the rows in `[start, stop)` of the fields in `schema`; all rows and fields by default.

        Fields are known by their ids. The pages of a large read are decoded in `threads` threads. `budget` is shared
        with other reads; without one, the read has what the file's size allows.
        """
        last = self.num_rows if stop is None else min(stop, self.num_rows)
        if start < 0 or start > max(last, start):
            raise InvalidInput(f"rows {start} to {stop} of {self.num_rows}")
        rows = RowSlice(start, max(start, last))
        return self._read(self.schema if schema is None else schema, rows, threads, budget)

    def take(self, schema: Schema | None, offsets: npt.ArrayLike, *, budget: Budget | None = None) -> pa.Table:
        """Return the rows at these offsets, in the given order, repeats included; `budget` is as in `read`.

        Raises `InvalidInput` for an offset outside the file.
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
        found = self._read(self.schema if schema is None else schema, _as_rows(distinct), budget=budget)
        return found if position is None else reorder(found, position)

    def load(self, schema: Schema) -> None:
        """Read the metadata of columns whose rows will be read."""
        self._file.prefetch_metadata(schema.fields)
        for field in schema.fields:
            self._file.load_metadata(field)

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
            yield from batches_of(table, batch_rows)
            first += window

    def encoded_bytes(self, schema: Schema) -> int:
        """Return about how many bytes of the file the fields of `schema` take."""
        return self._file.encoded_bytes(schema)

    def describe(self) -> list[list[tuple[str, ...]]]:
        """Name the layout and the encodings of each page of each column, outermost first."""
        return [self._file.describe(index) for index in range(self.num_columns)]

    def batch_offsets(self) -> tuple[int, ...]:
        """Return the first row of each batch of a 0.1 file, and the end of the last batch."""
        return self._file.batch_offsets()

    def batch_statistics(self, field_id: int) -> pa.StructArray | None:
        """Return null_count, min_value and max_value of a field for each batch of a 0.1 file; None if it has none.

        A bound need not be one of the values; a null bound is unknown.
        """
        return self._file.batch_statistics(field_id)

    def dictionary_values(self, field_id: int) -> pa.Array:
        """Return the dictionary values that a 0.1 file itself stores for a column; the table may have more.

        Raises `InvalidInput` for a file or field that has none.
        """
        return self._file.dictionary_values(field_id)

    def sections(self) -> Sections:
        """Return how many bytes each part of a 2.x file takes."""
        return self._file.sections()

    def column(self, index: int) -> Column:
        """Return the pages of one column of a 2.x file; raise `InvalidInput` if there is no such column."""
        return self._file.column(index)

    def _read(self, projection: Schema, rows: RowSelection, threads: int = 1, budget: Budget | None = None) -> pa.Table:
        budget = Budget(self.size_bytes) if budget is None else budget
        with naming_place(self.path, "schema"):
            budget.expect(rows.count, _row_bytes(projection))
        together = self._file.equal_parts(projection.fields, rows, budget)
        try:
            arrays = self._read_fields(projection.fields, together, rows, threads, budget)
        except (CorruptFile, UnsupportedFeature) as error:
            if not together or isinstance(error, ReadTooLarge):
                raise
            arrays = self._read_fields(projection.fields, (), rows, threads, budget)  # names the column in the error
        return table_of(projection, arrays, rows.count, self.path)

    def _read_fields(
        self,
        fields: Sequence[Field],
        together: Sequence[EqualPart],
        rows: RowSelection,
        threads: int,
        budget: Budget,
    ) -> list[list[pa.Array]]:
        """Return the arrays of each field; the fields in `together` are read by those parts."""
        placed = frozenset(chain.from_iterable(part.places for part in together))
        alone = [(at, field) for at, field in enumerate(fields) if at not in placed]
        self._file.prefetch_metadata([field for _, field in alone])
        parts = [(at, *part) for at, field in alone for part in self._file.column_parts(field, rows, budget)]
        tasks: list[Steps[Any]] = [part.steps for part in together]
        results = run_all(self._source, tasks + [task for _, steps, _ in parts for task in steps], threads)
        arrays: list[list[pa.Array]] = [[] for _ in fields]
        for equal, found in zip(together, results, strict=False):
            for at, array in zip(equal.places, found, strict=True):
                arrays[at].append(array)
        done = len(together)
        for at, steps, to_array in parts:
            arrays[at].append(to_array(results[done : done + len(steps)]))
            done += len(steps)
        return arrays

    def _window_rows(self, projection: Schema, batch_rows: int) -> int:
        """Return how many rows to decode at a time: whole batches of about `_WINDOW_BYTES`."""
        size = self.encoded_bytes(projection)
        rows = self.num_rows * _WINDOW_BYTES // max(size, 1)
        with naming_place(self.path, "schema"):
            rows = min(rows, _DECODED_BYTES // max(_row_bytes(projection), 1))
        return max(1, min(rows, 1 << 24) // batch_rows) * batch_rows


def _read_version(tail: bytes, path: str) -> FileVersion:
    """Return the version in a Lance file's last eight bytes; raise `CorruptFile` if they do not end a Lance file."""
    if len(tail) < _VERSION.size:
        raise CorruptFile(path, "footer", f"{len(tail)} bytes are too few for a Lance file")
    major, minor, magic = _VERSION.unpack(tail[-_VERSION.size :])
    if magic != MAGIC:
        raise CorruptFile(path, "footer", f"ends with {magic!r}, not {MAGIC!r}: not a Lance file, or cut short")
    return FileVersion.from_numbers(major, minor, path)


def _with_checks(source: FileSource, tail: bytes) -> tuple[FileSource, bytes]:
    """Return the file as a source that verifies what it reads, and the part of its last bytes that was verified.

    A file without checksums is returned as it is.
    """
    table = find_table(tail, source.size_bytes, source.name, source.read)
    if table is None:
        return source, tail
    checks = BlockChecks(source.name, table)
    return source.with_checks(checks), checks.trusted_part(tail, source.size_bytes)


def _as_rows(ascending: Int64Array) -> RowSelection:
    if len(ascending) and int(ascending[-1]) - int(ascending[0]) + 1 == len(ascending):
        return RowSlice(int(ascending[0]), int(ascending[-1]) + 1)
    return RowSet(ascending)


@lru_cache(maxsize=64)
def _row_bytes(projection: Schema) -> int:
    return sum(row_bytes(field.arrow_type) for field in projection.fields)
