"""Answer a scan: read a plan's blocks ahead, in threads, and hand over their rows in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice
from typing import TypeVar

import pyarrow as pa

from lance_ops.core.cores import available_cores
from lance_ops.core.errors import LanceOpsError
from lance_ops.core.map_ordered import map_ordered
from lance_ops.reading.row_columns import ROW_COLUMNS, row_field
from lance_ops.reading.scan_block import read_block
from lance_ops.reading.scan_plan import BLOCK_BYTES, Block, ScanPlan, ScanRequest, plan_scan
from lance_ops.reading.scanned_rows import ScannedRows, with_row_columns
from lance_ops.snapshot import FragmentReader, Snapshot
from lance_ops.table import Fragment

__all__ = [
    "TASK_READAHEAD",
    "ScanPlan",
    "ScanRequest",
    "empty_answer",
    "limit_rows",
    "plan_scan",
    "scan",
    "scan_rows",
]

T = TypeVar("T")

TASK_READAHEAD = 2
"""Blocks that a scan inside of a plan's task reads ahead: tasks run side by side already."""

_FILES_IN_A_ROW, _COLUMNS_OF_EACH = 16, 16
"""Files whose metadata is read in a row, if it is of no more columns: nobody waits long for the first rows."""

_REMOTE_READERS = 8  # of a remote store a reader waits far longer than it decodes


def scan(snapshot: Snapshot, request: ScanRequest) -> Iterator[pa.Table]:
    """Yield the answer block by block, fragment by fragment; blocks without a matching row are left out."""
    plan, names = plan_scan(snapshot, request), request.row_columns

    def finished(rows: ScannedRows) -> pa.Table:
        is_null = request.include_deleted_rows
        return with_row_columns(snapshot, rows.table, rows.fragment, rows.offsets, names, null_if_deleted=is_null)

    tables = (table for table in _read_all(snapshot, plan, finished) if table.num_rows)
    yield from limit_rows(tables, plan.offset, request.limit)


def scan_rows(snapshot: Snapshot, request: ScanRequest) -> Iterator[ScannedRows]:
    """Yield the answer as `scan` does, for whoever asks where the rows stand: no column has to say it.

    A request for this has no limit and no offset, and no column is added that it does not ask for.
    """
    assert request.limit is None and not request.offset
    names = request.asked_row_columns

    def finished(rows: ScannedRows) -> ScannedRows:
        return replace(rows, table=with_row_columns(snapshot, rows.table, rows.fragment, rows.offsets, names))

    found = _read_all(snapshot, plan_scan(snapshot, request), finished if names else lambda rows: rows)
    return (rows for rows in found if len(rows))


def limit_rows(tables: Iterator[pa.Table], offset: int, limit: int | None) -> Iterator[pa.Table]:
    """Skip `offset` rows, and end after `limit` more."""
    left = limit
    for table in tables:
        if left is not None and left <= 0:
            return
        skipped = min(offset, table.num_rows)
        offset -= skipped
        part = table.slice(skipped, left)
        if left is not None:
            left -= part.num_rows
        if part.num_rows:
            yield part


def empty_answer(request: ScanRequest) -> pa.Table:
    """Return an answer's columns without a row."""
    schema = request.schema.to_arrow_storage()
    return pa.schema([*schema, *map(row_field, request.row_columns)], schema.metadata).empty_table()


def _read_all(snapshot: Snapshot, plan: ScanPlan, finish: Callable[[ScannedRows], T]) -> Iterator[T]:
    """Read a plan's blocks ahead, in threads, and make of each what is wanted."""
    request = plan.request
    cores = available_cores()
    readers = cores if snapshot.store.reads_in_place else max(cores, _REMOTE_READERS)
    ahead = min(request.readahead or 2 * readers, len(plan.blocks))
    if request.buffer_bytes is not None:
        ahead = min(ahead, max(request.buffer_bytes // BLOCK_BYTES, 1))
    workers = max(1, min(readers, ahead))
    threads = max(1, cores // workers)  # for each block, where there are fewer blocks than cores
    # no more open files than blocks in hand
    reader_of = lru_cache(ahead + _FILES_IN_A_ROW)(lambda fragment: snapshot.reader(fragment, threads=threads))

    def read(block: Block) -> Iterable[T]:
        return read_block(snapshot, reader_of(block.fragment), block, request, finish)

    blocks = _loaded(snapshot, plan, reader_of) if request.limit is None else plan.blocks
    return chain.from_iterable(map_ordered(read, blocks, workers, ahead))


def _loaded(snapshot: Snapshot, plan: ScanPlan, reader_of: Callable[[Fragment], FragmentReader]) -> Iterator[Block]:
    """Yield the blocks; of several files in a row, read the metadata of the columns that their blocks begin with.

    The rows of a block push all else out of a core's caches. Work that is done for one file after the other finds the
    interpreter, and what it works on, still there. An error is for the read to raise, in its place.
    """
    request = plan.request
    read, tested = request.schema, request.schema
    if request.predicate is not None:
        tested = snapshot.schema.project(name for name in request.predicate.columns() if name not in ROW_COLUMNS)
    blocks = iter(plan.blocks)
    while group := tuple(islice(blocks, _FILES_IN_A_ROW)):
        begun = {block.fragment.id: block for block in group}
        for block in begun.values() if len(begun) > 1 else ():
            schema = read if block.predicate is None else tested
            if len(schema.fields) <= _COLUMNS_OF_EACH:
                with suppress(LanceOpsError, OSError):
                    reader_of(block.fragment).load(schema)
        yield from group
