"""Execute a scan: read the plan's blocks ahead, in threads, and yield their rows in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, islice
from typing import TypeVar

import pyarrow as pa

from lance_ops.core.errors import LanceOpsError, ReadTooLarge
from lance_ops.core.threads import available_cores, map_ordered
from lance_ops.file import Budget, SharedBytes
from lance_ops.reading.joined_blocks import JOINED_BYTES, BlockJoiner, JoinedRows
from lance_ops.reading.row_columns import SELECTABLE_ROW_COLUMNS, row_field
from lance_ops.reading.scan_block import MAX_BLOCK_BYTES, read_block, read_halves
from lance_ops.reading.scan_plan import BLOCK_BYTES, Block, ScanPlan, ScanRequest, check_is_stored, plan_scan
from lance_ops.reading.scan_trace import current_trace
from lance_ops.reading.scanned_rows import ScannedRows, with_row_columns
from lance_ops.snapshot import FragmentReader, Snapshot
from lance_ops.table import Fragment

__all__ = [
    "TASK_READAHEAD",
    "empty_answer",
    "in_task",
    "limit_rows",
    "scan",
    "scan_fragments",
    "scan_rows",
    "scan_whole",
]

T = TypeVar("T")

TASK_READAHEAD = 2
"""Blocks of full size that a scan inside a task reads ahead; see `in_task`."""

_PRELOADED_FILES, _MAX_PRELOADED_COLUMNS = 16, 16
"""Number of files whose metadata is loaded before their rows are read, if the scan reads no more than these columns.

Both are small, so that the first rows come soon.
"""

HELD_BYTES = 3 * BLOCK_BYTES
"""What a scan may hold at once for each block that it reads ahead; `MAX_BLOCK_BYTES` if it reads one.

A block that exceeds this together with the others is read in halves, one after the other, and later blocks are smaller.
"""

_MOST_CUTS = 8
"""The most parts that a planned block is cut into for all of a scan, because some block was larger than planned."""

_REMOTE_READERS = 16  # reads from a remote store wait far longer than they decode
_REMOTE_TASK_READERS = 8


def scan(snapshot: Snapshot, request: ScanRequest) -> Iterator[pa.Table]:
    """Yield the answer block by block, in the order of the fragments; blocks without a matching row are left out."""
    return (table for _, table in scan_fragments(snapshot, request))


def scan_whole(snapshot: Snapshot, request: ScanRequest) -> Iterator[pa.Table]:
    """Yield the answer as `scan` does, for a caller that reads all of it before it gives an answer.

    Small fragments that were read together are one table, unless the request adds row columns. Raises `ReadTooLarge` as
    `check_is_stored` does.
    """
    plan = plan_scan(snapshot, request)
    check_is_stored(snapshot, plan)
    add_row_columns = _adder_of_row_columns(snapshot, request)
    finish_joined = None if request.row_columns else lambda joined: [joined.table]
    tables = _read_all(snapshot, plan, add_row_columns, finish_joined)
    yield from (table for _, table in _answer(plan, ((None, table) for table in tables)))


def scan_fragments(snapshot: Snapshot, request: ScanRequest) -> Iterator[tuple[int, pa.Table]]:
    """Yield the answer as `scan` does, each block with the id of its fragment."""
    add_row_columns = _adder_of_row_columns(snapshot, request)
    plan = plan_scan(snapshot, request)
    yield from _answer(plan, _read_all(snapshot, plan, lambda rows: (rows.fragment.id, add_row_columns(rows))))


def _adder_of_row_columns(snapshot: Snapshot, request: ScanRequest) -> Callable[[ScannedRows], pa.Table]:
    """Return a function that appends the requested row columns to rows of one fragment."""
    names, is_null = request.row_columns, request.include_deleted_rows
    return lambda rows: with_row_columns(
        snapshot, rows.table, rows.fragment, rows.offsets, names, null_if_deleted=is_null
    )


def _answer(plan: ScanPlan, found: Iterator[tuple[T, pa.Table]]) -> Iterator[tuple[T, pa.Table]]:
    """Return the parts that have rows, within the offset and the limit; record them if the scan is traced.

    A part is a table behind a key of the caller's.
    """
    trace, request = current_trace(), plan.request
    found = (part for part in found if part[1].num_rows)
    if plan.offset or request.limit is not None:
        found = _limit_parts(found, plan.offset, request.limit)
    if trace is not None:
        trace.add_plan(plan.num_fragments, len(plan.blocks), plan.num_physical_rows)
        found = trace.read.advancing(found, lambda part: part[1].num_rows)
    return found


def in_task(snapshot: Snapshot, request: ScanRequest) -> ScanRequest:
    """Return the request of a scan inside a task, which reads few blocks ahead because tasks already run in parallel.

    On a remote store it reads more of them if they are small: then it waits for many at once, in the same memory.
    """
    readahead = TASK_READAHEAD if snapshot.store.reads_in_place else _REMOTE_TASK_READERS
    return replace(request, readahead=readahead, buffer_bytes=TASK_READAHEAD * BLOCK_BYTES)


def scan_rows(snapshot: Snapshot, request: ScanRequest) -> Iterator[ScannedRows]:
    """Yield the answer as `scan` does, as rows with their physical offsets.

    The request must have no limit and no offset. Only requested columns are added, even if there are none. Raises
    `ReadTooLarge` as `check_is_stored` does: the callers change a table, so they need all rows.
    """
    assert request.limit is None and not request.offset
    names = request.asked_row_columns

    def add_row_columns(rows: ScannedRows) -> ScannedRows:
        return replace(rows, table=with_row_columns(snapshot, rows.table, rows.fragment, rows.offsets, names))

    plan = plan_scan(snapshot, request)
    check_is_stored(snapshot, plan)
    found = _read_all(snapshot, plan, add_row_columns if names else lambda rows: rows)
    return (rows for rows in found if len(rows))


def limit_rows(tables: Iterator[pa.Table], offset: int, limit: int | None) -> Iterator[pa.Table]:
    """Skip `offset` rows, and end after `limit` more."""
    return (table for _, table in _limit_parts(((None, table) for table in tables), offset, limit))


def _limit_parts(parts: Iterator[tuple[T, pa.Table]], offset: int, limit: int | None) -> Iterator[tuple[T, pa.Table]]:
    remaining = limit
    for key, table in parts:
        if remaining is not None and remaining <= 0:
            return
        skipped = min(offset, table.num_rows)
        offset -= skipped
        part = table.slice(skipped, remaining)
        if remaining is not None:
            remaining -= part.num_rows
        if part.num_rows:
            yield key, part


def empty_answer(request: ScanRequest) -> pa.Table:
    """Return a table with the columns of the answer and no rows."""
    schema = request.schema.to_arrow_storage()
    return pa.Table.from_batches([], pa.schema([*schema, *map(row_field, request.row_columns)], schema.metadata))


def _read_all(
    snapshot: Snapshot,
    plan: ScanPlan,
    finish: Callable[[ScannedRows], T],
    finish_joined: Callable[[JoinedRows], Iterable[T]] | None = None,
) -> Iterator[T]:
    """Read a plan's blocks ahead, in threads, and yield the results of `finish`, which gets the rows of one fragment.

    `finish_joined` gets the rows of blocks that were read together, and returns their results. Without it, `finish`
    gets them fragment by fragment. A single block is read here and now: it needs no other thread, no reading ahead and
    no group.
    """
    request = plan.request
    finish_group = finish_joined or (lambda joined: [*map(finish, joined.by_fragment())])
    cores = available_cores()
    scanned = _scanned_fields(snapshot, request)
    if len(plan.blocks) == 1:
        (only,) = plan.blocks
        reader = snapshot.reader(only.fragment, threads=cores, scanned=scanned)
        yield from _read_alone(snapshot, reader, only, request, finish)
        return
    joiner = BlockJoiner(snapshot, request)
    readers = cores if snapshot.store.reads_in_place else max(cores, _REMOTE_READERS)
    ahead = min(request.readahead or max(2 * cores, readers), len(plan.blocks))
    held_bytes = ahead * HELD_BYTES
    if request.buffer_bytes is not None:
        largest_bytes = max(plan.largest_block_bytes, JOINED_BYTES if joiner.joins else 0)
        ahead = min(ahead, max(request.buffer_bytes // largest_bytes, 1))
        held_bytes = min(ahead * HELD_BYTES, request.buffer_bytes * HELD_BYTES // BLOCK_BYTES)
    workers = max(1, min(readers, ahead))
    threads = max(1, cores // workers)  # of each block, if there are fewer blocks than cores
    # bounds the open readers by the blocks that are in progress
    reader_of = lru_cache(ahead + _PRELOADED_FILES)(partial(snapshot.reader, threads=threads, scanned=scanned))

    held = SharedBytes(max(held_bytes, MAX_BLOCK_BYTES))
    share = 1  # of a planned block that is read at once: blocks that are larger than planned make it smaller

    def read(task: tuple[tuple[Block, ...], int]) -> tuple[Budget, Iterable[T]]:
        """Return a block's results, and the bytes to give back when the caller asks for the next block's."""
        nonlocal share
        (block, *others), cut_into = task
        budget = Budget(0, MAX_BLOCK_BYTES, held)
        if others:
            joined = joiner.read(task[0], finish_group, budget)
            if joined is not None:
                return budget, joined
            budget.release()
            alone = (_read_alone(snapshot, reader_of(block.fragment), block, request, finish) for block in task[0])
            return budget, chain.from_iterable(alone)
        reader = reader_of(block.fragment)
        try:
            return budget, read_block(snapshot, reader, block, request, finish, budget)
        except ReadTooLarge:
            budget.release()
            share = min(max(share, 2 * cut_into), _MOST_CUTS)
            return budget, read_halves(snapshot, reader, block, request, finish)

    groups = joiner.group(plan.blocks, workers)
    if request.limit is None:
        groups = _preloaded(snapshot, request, groups, reader_of)
    tasks = ((part, share) for group in groups for part in _cut(group, share))
    for budget, found in map_ordered(read, tasks, workers, ahead):
        yield from found
        del found
        budget.release()


def _read_alone(
    snapshot: Snapshot, reader: FragmentReader, block: Block, request: ScanRequest, finish: Callable[[ScannedRows], T]
) -> Iterable[T]:
    """Read a block while no other block is held; in halves if it is too large."""
    try:
        return read_block(snapshot, reader, block, request, finish, Budget(0, MAX_BLOCK_BYTES))
    except ReadTooLarge:
        return read_halves(snapshot, reader, block, request, finish)


def _scanned_fields(snapshot: Snapshot, request: ScanRequest) -> frozenset[int]:
    """Return the ids of the fields, nested ones included, that the request returns or tests; none of a local store.

    A local store does not use them.
    """
    if snapshot.store.reads_in_place:
        return frozenset()
    tested = () if request.predicate is None else request.predicate.columns()
    schemas = (request.schema, snapshot.schema.project(name for name in tested if name not in SELECTABLE_ROW_COLUMNS))
    return frozenset(field.id for schema in schemas for field in schema.walk())


def _cut(group: tuple[Block, ...], share: int) -> Iterator[tuple[Block, ...]]:
    """Yield a single block in `share` parts, and a group of small ones as it is."""
    if len(group) > 1:
        yield group
    else:
        (block,) = group
        yield from ((part,) for part in block.cut(-(-len(block) // share)))


def _preloaded(
    snapshot: Snapshot,
    request: ScanRequest,
    groups: Iterator[tuple[Block, ...]],
    reader_of: Callable[[Fragment], FragmentReader],
) -> Iterator[tuple[Block, ...]]:
    """Yield the groups; before single blocks of several files, load the metadata of the columns that are read first.

    The rows of a block evict everything else from a core's caches. Loading the metadata of several files in a row keeps
    the interpreter and its data in the caches. Errors are ignored here: the read of the block raises them in order.
    """
    requested, tested = request.schema, request.schema
    if request.predicate is not None:
        tested = snapshot.schema.project(
            name for name in request.predicate.columns() if name not in SELECTABLE_ROW_COLUMNS
        )
    while following := tuple(islice(groups, _PRELOADED_FILES)):
        first_blocks = {block.fragment.id: block for block, *others in following if not others}
        for block in first_blocks.values() if len(first_blocks) > 1 else ():
            schema = requested if block.predicate is None else tested
            if len(schema.fields) <= _MAX_PRELOADED_COLUMNS:
                with suppress(LanceOpsError, OSError):
                    reader_of(block.fragment).load(schema)
        yield from following
