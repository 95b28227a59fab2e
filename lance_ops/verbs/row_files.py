"""Look at raw files whose rows name rows of a table by `_rowaddr` or `_rowid`, and have values for them.

In threads, this process reads the files, and holds 8 bytes for each of their rows. Tasks of another runner read them,
and share the addresses out through files beneath the table's `data`, 16 bytes for each row, which are removed. The
driver gets 8 bytes for each file of addresses and each bucket of about a million rows, two numbers for each fragment
that has a named row, and the first rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from lance_ops import changing
from lance_ops.api import LanceDataset
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.core.addresses import fragment_of
from lance_ops.core.arrow import rows_at
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import CaseRule
from lance_ops.maintenance.ingest import RawFile, RawReader, RowFitting, found_file, plain_schema, unified_raw_schema
from lance_ops.reading import ROW_ADDRESS, ROW_ID, ScanRequest, take_addresses
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.snapshot import SnapshotReference
from lance_ops.table import Fragment
from lance_ops.verbs.sources import is_dataset
from lance_ops.writing import conform_to_schema

__all__ = ["RowFiles", "look_at_row_files"]

_ROWS_AT_ONCE = 1 << 20
"""A task holds the addresses of about this many rows, before it writes them."""


@dataclass(frozen=True, eq=False)
class RowFiles:
    """What raw files have: the first values of their columns, and how many rows they name of each fragment.

    `first_addresses` are the rows that get the first values.
    """

    first: pa.Table
    first_addresses: Uint64Array
    rows_by_fragment: Mapping[int, int]
    size_bytes: int

    @property
    def values(self) -> pa.Schema:
        """The columns of values."""
        return self.first.schema

    @property
    def num_rows(self) -> int:
        """How many rows of the table the files name."""
        return sum(self.rows_by_fragment.values())

    def fragments(self, data: LanceDataset) -> list[Fragment]:
        """Return the fragments that have a named row."""
        known = data.snapshot.fragments_by_id
        return [known[fragment_id] for fragment_id in sorted(self.rows_by_fragment)]

    def first_rows(self, data: LanceDataset, columns: Sequence[str], values: Sequence[str]) -> pa.Table:
        """Return columns of the table in the first named rows, and beside them these values of the files."""
        schema = data.snapshot.schema.project(list(columns))
        rows = take_addresses(data.snapshot, self.first_addresses, ScanRequest(schema))
        for name in values:
            rows = rows.append_column(f"{name} (new)" if name in data.schema.names else name, self.first[name])
        return rows


def look_at_row_files(data: LanceDataset, runner: Runner, files: Sequence[str], num_first: int) -> RowFiles:
    """Read the files, find the rows that they name, and keep the first `num_first` of them with their values.

    `InThreads` reads them in this process, another runner by its tasks. A column of the table is read in its type
    there. Raises `InvalidInput` for a dataset, for files without a column of keys or without another one, and for a key
    that names no live row, or a row that another key names, too; `SchemaMismatch` for a file that lacks a column of the
    others, and for values that do not fit the column; and `RawFileRefused` for a file that cannot be read.
    """
    stored = next((file for file in files if is_dataset(file)), None)
    if stored is not None:
        raise InvalidInput(f"{stored} is a dataset, and no column of it names rows: merge it by key instead")
    found = [found_file(file, {}) for file in files]
    reading = _Reading.of(data, found, runner)
    if isinstance(runner, InThreads):
        return _read_here(data, reading, found, num_first)
    return _read_by_tasks(data, runner, reading, found, num_first)


@dataclass(frozen=True)
class _Reading:
    """How the files are read: in these columns, of which the first one names rows."""

    fitting: RowFitting
    columns: pa.Schema

    @classmethod
    def of(cls, data: LanceDataset, files: Sequence[RawFile], runner: Runner) -> _Reading:
        """Find the columns of the files, by tasks of the runner."""
        schema = unified_raw_schema(files, {}, case_rule=CaseRule.SENSITIVE, runner=runner)
        key, names = changing.key_and_values(schema.names)
        if key is None or not names:
            lacking = f"no column {ROW_ADDRESS} or {ROW_ID} that names rows" if key is None else "no column of values"
            raise InvalidInput(f"{files[0].uri} has {lacking}; it has {', '.join(schema.names)}")
        known = plain_schema(data.snapshot.schema).append(pa.field(key, pa.uint64()))
        fitting = RowFitting.exact(schema, known)
        return cls(fitting, pa.schema([fitting.table.field(name) for name in (key, *names)]))

    @property
    def key(self) -> str:
        """The column that names rows."""
        return str(self.columns.names[0])

    @property
    def by_id(self) -> bool:
        """Whether row ids name the rows."""
        return changing.names_row_ids(self.key)

    def rows(self, file: RawFile, reader: RawReader) -> Iterator[pa.Table]:
        """Yield the rows of a file."""
        for batch in self.fitting.rows(file, reader):
            yield conform_to_schema(batch.select(self.columns.names), self.columns)


def _read_here(data: LanceDataset, reading: _Reading, files: Sequence[RawFile], num_first: int) -> RowFiles:
    keys: list[pa.Array] = [pa.array([], pa.uint64())]
    first = reading.columns.empty_table()
    with RawReader({}) as reader:
        for rows in chain.from_iterable(reading.rows(file, reader) for file in files):
            keys += rows[reading.key].chunks
            if len(first) < num_first:
                first = pa.concat_tables([first, rows.slice(0, num_first - len(first))])
    addresses = changing.named_rows(data.snapshot, pa.chunked_array(keys), by_id=reading.by_id)
    ids, counts = np.unique(fragment_of(addresses), return_counts=True)
    by_fragment = dict(zip(ids.tolist(), counts.tolist(), strict=True))
    return RowFiles(first.drop_columns([reading.key]), addresses[: len(first)], by_fragment, _size_bytes(files))


def _read_by_tasks(
    data: LanceDataset, runner: Runner, reading: _Reading, files: Sequence[RawFile], num_first: int
) -> RowFiles:
    target, size_bytes = data.snapshot, _size_bytes(files)
    most = sum(fragment.physical_rows for fragment in target.fragments)
    # A row takes a byte or more, in most files.
    num_parts = len(files) + size_bytes // _ROWS_AT_ONCE
    buckets = changing.RowBuckets.of(target, min(most, size_bytes), num_parts)
    job = Job.on("locate rows of", data.uri, data.version, size_bytes=size_bytes)
    try:
        located = runner.map(_LocateRows(reading, buckets), files, job.in_bytes(file.size_bytes for file in files))
        by_fragment = buckets.count(target, [part for each in located for part in each.parts], runner)
    finally:
        buckets.clear(target)
    begins = list(_first_files(zip(files, (each.num_rows for each in located), strict=True), num_first))
    job = Job.on("read first rows for", data.uri, data.version, size_bytes=_size_bytes([file for file, _ in begins]))
    first = runner.map(_ReadFirstRows(reading, buckets.target), begins, job)
    values = [reading.columns.empty_table().drop_columns([reading.key]), *(each.values for each in first)]
    addresses = np.concatenate([np.empty(0, np.uint64), *(each.addresses for each in first)])
    return RowFiles(pa.concat_tables(values), addresses, by_fragment, size_bytes)


def _size_bytes(files: Iterable[RawFile]) -> int:
    return sum(file.size_bytes for file in files)


def _first_files(files: Iterable[tuple[RawFile, int]], num_first: int) -> Iterator[tuple[RawFile, int]]:
    """Yield the files that have the first rows, each with how many of them it has."""
    for file, num_rows in files:
        taken = min(num_rows, num_first)
        num_first -= taken
        if taken:
            yield file, taken


@dataclass(frozen=True, eq=False)
class _LocatedRows:
    """Where a task wrote the addresses that a file names, and how many there are."""

    parts: tuple[by_tasks.SegmentFile, ...]
    num_rows: int


@dataclass(frozen=True, eq=False)
class _LocateRows:
    """Reads a file whole, and writes the addresses of the rows that it names for the tasks that count them."""

    reading: _Reading
    buckets: changing.RowBuckets

    def __call__(self, file: RawFile) -> _LocatedRows:
        snapshot, key = self.buckets.target.open(), self.reading.key
        parts, num_rows = list[by_tasks.SegmentFile](), 0
        with RawReader({}) as reader:
            keys = (rows[key] for rows in self.reading.rows(file, reader))
            located = (changing.locate_rows(snapshot, each, by_id=self.reading.by_id) for each in keys)
            for addresses in _in_large_parts(located):
                parts.append(self.buckets.write(snapshot, addresses, addresses))
                num_rows += len(addresses)
        return _LocatedRows(tuple(parts), num_rows)


def _in_large_parts(arrays: Iterable[Uint64Array]) -> Iterator[Uint64Array]:
    """Yield the arrays joined to at least `_ROWS_AT_ONCE` numbers, or what is left of them."""
    held, num_rows = list[Uint64Array](), 0
    for each in arrays:
        held.append(each)
        num_rows += len(each)
        if num_rows >= _ROWS_AT_ONCE:
            yield np.concatenate(held)
            held, num_rows = [], 0
    if num_rows:
        yield np.concatenate(held)


@dataclass(frozen=True, eq=False)
class _FirstRows:
    """The values of the first rows of a file, and the addresses of the rows that they are for."""

    values: pa.Table
    addresses: Uint64Array


@dataclass(frozen=True)
class _ReadFirstRows:
    """Reads this many rows of a file, and no more than the batches that have them."""

    reading: _Reading
    target: SnapshotReference

    def __call__(self, task: tuple[RawFile, int]) -> _FirstRows:
        file, num_first = task
        found, key = self.reading.columns.empty_table(), self.reading.key
        with RawReader({}) as reader:
            for rows in self.reading.rows(file, reader):
                found = pa.concat_tables([found, rows.slice(0, num_first - len(found))])
                if len(found) == num_first:
                    break
        copied = rows_at(found, np.arange(len(found)))  # a slice would take the buffers of whole batches with it
        addresses = changing.locate_rows(self.target.open(), copied[key], by_id=self.reading.by_id)
        return _FirstRows(copied.drop_columns([key]), addresses)
