"""The two files of a B-tree index: write them from sorted rows, or copy them with new addresses.

    page_data.lance      values: T, ids: u64 not null      sorted by value, nulls first
    page_lookup.lance    min: T, max: T, null_count: u32 not null, page_idx: u32 not null      one row a page

A page is `batch_size` consecutive rows of page_data; the last page may be shorter. `min` and `max` are a page's first
and last values. `min` is null if the page begins with nulls, `max` is null if the page holds only nulls. page_lookup's
schema metadata holds `batch_size`, and `range_partitioned` if page_data is spread over several files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import array_of_numbers
from lance_ops.core.errors import CorruptFile, LanceOpsError
from lance_ops.core.schema import Schema
from lance_ops.file import FileReader, FileWriter
from lance_ops.store import Store
from lance_ops.table import IndexFile

__all__ = [
    "BATCH_SIZE",
    "IDS",
    "MAX",
    "MIN",
    "NULL_COUNT",
    "PAGE_DATA",
    "PAGE_IDX",
    "PAGE_LOOKUP",
    "RANGE_PARTITIONED",
    "VALUES",
    "NotCopied",
    "PageStatistics",
    "check_schema",
    "copy_pages",
    "data_rows",
    "data_schema",
    "deleted_on_failure",
    "lookup_of",
    "new_file",
    "value_type_of",
    "write_lookup",
    "write_pages",
    "written",
]

PAGE_DATA = "page_data.lance"
PAGE_LOOKUP = "page_lookup.lance"
VALUES, IDS = "values", "ids"
MIN, MAX, NULL_COUNT, PAGE_IDX = "min", "max", "null_count", "page_idx"
BATCH_SIZE, RANGE_PARTITIONED = "batch_size", "range_partitioned"


class NotCopied(Exception):
    """The pages of an index cannot be copied; they must be written anew."""


def write_pages(
    rows: Iterable[pa.RecordBatch], value_type: pa.DataType, page_rows: int, store: Store
) -> tuple[IndexFile, ...]:
    """Write an index from sorted rows of page_data; a failure leaves no file behind."""
    pages = PageStatistics(value_type, page_rows)
    with new_file(store, PAGE_DATA, data_schema(value_type)) as writer:
        for batch in rows:
            writer.write_batch(pages.record(batch))
        with finished_beside(writer):
            lookup = write_lookup(pages.lookup(), store)
    return written(writer), lookup


def write_lookup(lookup: pa.RecordBatch, store: Store) -> IndexFile:
    """Write page_lookup; a failure leaves no file behind."""
    with new_file(store, PAGE_LOOKUP, lookup.schema) as writer:
        writer.write_batch(lookup)
    return written(writer)


def copy_pages(
    data: FileReader, lookup: pa.Buffer, ids: Iterable[pa.RecordBatch], store: Store
) -> tuple[IndexFile, ...]:
    """Write the index of the same values with other `ids`: copy the values' pages and the lookup.

    `ids` holds one address for each value. Raises `NotCopied` if the pages cannot be copied or should be encoded anew.
    A failure leaves no file behind.
    """
    with new_file(store, PAGE_DATA, data_schema(data.schema.field(VALUES).arrow_type)) as writer:
        if not writer.copy_column(VALUES, data):
            raise NotCopied
        for batch in ids:
            writer.write_batch(batch)
        with finished_beside(writer), deleted_on_failure(store, PAGE_LOOKUP):
            store.put(PAGE_LOOKUP, lookup, durable=False)
    return written(writer), IndexFile(PAGE_LOOKUP, lookup.size)


def data_schema(value_type: pa.DataType) -> pa.Schema:
    """Return the columns of page_data."""
    return pa.schema([pa.field(VALUES, value_type), pa.field(IDS, pa.uint64(), nullable=False)])


def data_rows(values: pa.Array, ids: pa.Array) -> pa.RecordBatch:
    """Return the batch of page_data's rows with these values and addresses."""
    return pa.RecordBatch.from_arrays([values, ids], schema=data_schema(values.type))


def lookup_schema(value_type: pa.DataType) -> pa.Schema:
    """Return the columns of page_lookup."""
    return pa.schema(
        [
            pa.field(MIN, value_type),
            pa.field(MAX, value_type),
            pa.field(NULL_COUNT, pa.uint32(), nullable=False),
            pa.field(PAGE_IDX, pa.uint32(), nullable=False),
        ]
    )


def value_type_of(lookup: pa.Schema, path: str) -> pa.DataType:
    """Return the type of the values from page_lookup's schema; raise `CorruptFile` for unexpected columns."""
    value_type = lookup.field(MIN).type if MIN in lookup.names else pa.null()
    check_schema(lookup, lookup_schema(value_type), path)
    return value_type


def check_schema(found: pa.Schema, expected: pa.Schema, path: str) -> None:
    """Raise `CorruptFile` unless a file has these columns; nullability is not compared."""
    for column in expected:
        if column.name not in found.names or found.field(column.name).type != column.type:
            raise CorruptFile(path, "schema", f"no column {column.name!r} of type {column.type}")


class PageStatistics:
    """Collects the first and last value of each page while sorted rows pass through."""

    def __init__(self, value_type: pa.DataType, page_rows: int) -> None:
        self._value_type = value_type
        self._page_rows = page_rows
        self._firsts: list[pa.Array] = []
        self._lasts: list[pa.Array] = []
        self._num_rows = 0
        self._num_nulls = 0
        self._last = pa.nulls(0, value_type)

    def record(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Record a batch's page bounds and return the batch."""
        values = batch.column(0)
        into_page = self._num_rows % self._page_rows
        starts = np.arange(-into_page % self._page_rows, len(values), self._page_rows)
        ends = np.arange(self._page_rows - 1 - into_page, len(values), self._page_rows)
        # `take` copies: a slice would keep the whole batch alive.
        self._firsts.append(values.take(array_of_numbers(starts)))
        self._lasts.append(values.take(array_of_numbers(ends)))
        if len(values):
            self._last = values.take(array_of_numbers(np.array([len(values) - 1])))
        self._num_rows += len(values)
        self._num_nulls += values.null_count
        return batch

    def lookup(self) -> pa.RecordBatch:
        """Return the rows of page_lookup."""
        open_page = [self._last] if self._num_rows % self._page_rows else []
        empty = pa.nulls(0, self._value_type)
        mins = pa.concat_arrays([empty, *self._firsts])
        maxs = pa.concat_arrays([empty, *self._lasts, *open_page])
        return lookup_of(mins, maxs, self._num_nulls, self._num_rows, self._page_rows)


def lookup_of(mins: pa.Array, maxs: pa.Array, num_nulls: int, num_rows: int, page_rows: int) -> pa.RecordBatch:
    """Return the rows of page_lookup from the first and the last value of each page."""
    pages = np.arange(len(mins), dtype=np.uint32)
    sizes = np.minimum(num_rows - pages.astype(np.int64) * page_rows, page_rows)
    nulls = np.clip(num_nulls - pages.astype(np.int64) * page_rows, 0, sizes)
    schema = lookup_schema(mins.type).with_metadata({BATCH_SIZE: str(page_rows), RANGE_PARTITIONED: "false"})
    return pa.RecordBatch.from_arrays(
        [mins, maxs, array_of_numbers(nulls.astype(np.uint32)), array_of_numbers(pages)], schema=schema
    )


@contextmanager
def finished_beside(writer: FileWriter) -> Iterator[None]:
    """Finish a file while the block runs, where the store can; wait for the file at the block's end."""
    _, is_visible = writer.begin_finish()
    try:
        yield
    finally:
        is_visible()


@contextmanager
def new_file(store: Store, path: str, schema: pa.Schema) -> Iterator[FileWriter]:
    """Open a new file for the block and finish it at its end; delete it if the block fails. Nothing is synced."""
    # the file may exist after a failure: the store may have stored it although its answer was lost
    with (
        deleted_on_failure(store, path),
        FileWriter(store, path, Schema.from_arrow(schema), durable=False) as writer,
    ):
        yield writer


@contextmanager
def deleted_on_failure(store: Store, *paths: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for path in paths:
            with suppress(LanceOpsError):  # clean-up will delete the file; the first error is the one to report
                store.delete(path)
        raise


def written(writer: FileWriter) -> IndexFile:
    return IndexFile(writer.path, writer.finish().size_bytes)
