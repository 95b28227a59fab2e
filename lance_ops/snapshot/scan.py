"""Answer a scan: which blocks of rows, which of their rows match, which columns of those.

A plan lists blocks: ranges of a fragment's physical rows, or the scattered offsets that an index named. Reading one
block is independent of all others; deleted rows are subtracted in each, so no path through here can return one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.cores import available_cores
from lance_ops.core.errors import InvalidInput, ReadTooLarge
from lance_ops.core.predicate import Predicate
from lance_ops.core.schema import Schema
from lance_ops.indices import RowAddressSet
from lance_ops.snapshot.fragment_reader import FragmentReader
from lance_ops.snapshot.index_lookup import IndexLookup, look_up
from lance_ops.snapshot.ordered import map_ordered
from lance_ops.snapshot.row_columns import ROW_ADDRESS, ROW_COLUMNS, ROW_ID, row_field
from lance_ops.snapshot.scanned import ScannedRows, with_row_columns
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.roaring import offsets_in

__all__ = [
    "TASK_READAHEAD",
    "ScanPlan",
    "ScanRequest",
    "empty_answer",
    "limited",
    "plan_scan",
    "scan",
    "scan_rows",
]

Offsets = npt.NDArray[np.uint64]
T = TypeVar("T")

TASK_READAHEAD = 2
"""Blocks that a scan inside of a plan's task reads ahead: tasks run side by side already."""

_REMOTE_READERS = 8  # of a remote store a reader waits far longer than it decodes
_BLOCK_BYTES = 16 * 1024**2
_MAX_BLOCK_ROWS = 1024**2
_VARIABLE_BYTES = 16  # what a value of no fixed width is taken for where its file says less
_TAKE_BELOW = 0.05  # of a block's rows match: fetch the other columns row by row


@dataclass(frozen=True)
class ScanRequest:
    """What to return. `limit` and `offset` count rows of the answer.

    Of `fragment_ids`, in this order, only `rows`; None means all. `version_columns` are those of `VERSION_COLUMNS` to
    add. Rows of no columns at all come with their addresses, since a table must have a column to have rows.

    `readahead` is how many blocks are read before they are asked for, of at most `buffer_bytes` together. The columns
    in `late_columns` are read after the predicate was tested, and only where it is true; None: those of which few are
    needed. With `indexed_only`, fragments that an index in use does not cover are left out.
    """

    schema: Schema
    predicate: Predicate | None = None
    limit: int | None = None
    offset: int = 0
    with_row_id: bool = False
    with_row_address: bool = False
    version_columns: tuple[str, ...] = ()
    include_deleted_rows: bool = False
    fragment_ids: tuple[int, ...] | None = None
    rows: RowAddressSet | None = None
    use_scalar_index: bool = True
    use_stats: bool = True
    indexed_only: bool = False
    late_columns: frozenset[str] | None = None
    readahead: int | None = None
    buffer_bytes: int | None = None

    @property
    def row_columns(self) -> tuple[str, ...]:
        """The columns of the answer after those of the schema."""
        wanted = self.asked_row_columns
        return wanted if wanted or self.schema.fields else (ROW_ADDRESS,)

    @property
    def asked_row_columns(self) -> tuple[str, ...]:
        """Those of `row_columns` that were asked for."""
        asked = ((ROW_ID, self.with_row_id), (ROW_ADDRESS, self.with_row_address))
        return (*(name for name, wanted in asked if wanted), *self.version_columns)


@dataclass(frozen=True)
class Block:
    """Rows of one fragment to look at: all of `start` to `stop`, or of these only the live `offsets`.

    `predicate` is what remains to be tested on them.
    """

    fragment: Fragment
    start: int
    stop: int
    offsets: Offsets | None
    predicate: Predicate | None

    def halves(self) -> tuple[Block, ...]:
        """Return the block as two of half the rows; none for a single row."""
        rows = self.stop - self.start if self.offsets is None else len(self.offsets)
        if rows < 2:
            return ()
        if self.offsets is None:
            middle = self.start + rows // 2
            return replace(self, stop=middle), replace(self, start=middle)
        return replace(self, offsets=self.offsets[: rows // 2]), replace(self, offsets=self.offsets[rows // 2 :])


@dataclass(frozen=True)
class ScanPlan:
    """The blocks in the order of the answer's rows, and what an index contributed.

    `offset` is how many of the rows in them to skip.
    """

    request: ScanRequest
    blocks: tuple[Block, ...]
    offset: int
    lookup: IndexLookup | None = None

    def explain(self) -> str:
        """Describe the plan, one node a line."""
        names = ", ".join(self.request.schema.names)
        predicate = self.request.predicate.to_sql() if self.request.predicate else "--"
        fragments = len({block.fragment.id for block in self.blocks})
        lines = [f"LanceRead: projection=[{names}], num_fragments={fragments}, full_filter={predicate}"]
        if self.lookup:
            lines.append(f"  ScalarIndexQuery: query={self.lookup.describe()}")
            scanned = len({block.fragment.id for block in self.blocks if block.offsets is None})
            lines.append(f"    unindexed fragments scanned: {scanned}")
        return "\n".join(lines)


def plan_scan(snapshot: Snapshot, request: ScanRequest) -> ScanPlan:
    """Choose the blocks; searches an index if one can serve a part of the predicate.

    Raises `InvalidInput` for a fragment that the version does not have.
    """
    fragments = _fragments(snapshot, request.fragment_ids)
    if request.rows is not None:
        chosen = (_row_blocks(snapshot, fragment, request.rows, request.predicate, request) for fragment in fragments)
        return ScanPlan(request, tuple(chain.from_iterable(chosen)), request.offset)
    if request.predicate is None:
        return ScanPlan(request, tuple(_window(snapshot, request, fragments)), 0)
    lookup = None
    if request.use_scalar_index and not request.include_deleted_rows:
        lookup = look_up(snapshot, request.predicate)
    blocks: list[Block] = []
    for fragment in fragments:
        if lookup is not None and fragment.id in lookup.covered:
            blocks.extend(_row_blocks(snapshot, fragment, lookup.rows, lookup.remainder, request))
        elif lookup is None or not request.indexed_only:
            blocks.extend(_range_blocks(snapshot, fragment, 0, fragment.physical_rows, request))
    return ScanPlan(request, tuple(blocks), request.offset, lookup)


def scan(snapshot: Snapshot, request: ScanRequest) -> Iterator[pa.Table]:
    """Yield the answer block by block, fragment by fragment; blocks without a matching row are left out."""
    plan, names = plan_scan(snapshot, request), request.row_columns

    def finished(rows: ScannedRows) -> pa.Table:
        is_null = request.include_deleted_rows
        return with_row_columns(snapshot, rows.table, rows.fragment, rows.offsets, names, null_if_deleted=is_null)

    tables = (table for table in _read_all(snapshot, plan, finished) if table.num_rows)
    yield from limited(tables, plan.offset, request.limit)


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


def _read_all(snapshot: Snapshot, plan: ScanPlan, finish: Callable[[ScannedRows], T]) -> Iterator[T]:
    """Read a plan's blocks ahead, in threads, and make of each what is wanted."""
    request = plan.request
    cores = available_cores()
    readers = cores if snapshot.store.reads_in_place else max(cores, _REMOTE_READERS)
    ahead = min(request.readahead or 2 * readers, len(plan.blocks))
    if request.buffer_bytes is not None:
        ahead = min(ahead, max(request.buffer_bytes // _BLOCK_BYTES, 1))
    workers = max(1, min(readers, ahead))
    threads = max(1, cores // workers)  # for each block, where there are fewer blocks than cores
    # no more open files than blocks in hand
    reader_of = lru_cache(ahead + 1)(lambda fragment: snapshot.reader(fragment, threads=threads))

    def read(block: Block) -> Iterable[T]:
        return _read_parts(snapshot, reader_of(block.fragment), block, request, finish)

    return chain.from_iterable(map_ordered(read, plan.blocks, workers, ahead))


def limited(tables: Iterator[pa.Table], offset: int, limit: int | None) -> Iterator[pa.Table]:
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


def _fragments(snapshot: Snapshot, fragment_ids: tuple[int, ...] | None) -> Sequence[Fragment]:
    if fragment_ids is None:
        return snapshot.fragments
    wanted = dict.fromkeys(fragment_ids)
    unknown = wanted.keys() - snapshot.fragments_by_id.keys()
    if unknown:
        raise InvalidInput(f"{snapshot.uri}: version {snapshot.version} has no fragment {min(unknown)}")
    return [snapshot.fragments_by_id[fragment_id] for fragment_id in wanted]


def _window(snapshot: Snapshot, request: ScanRequest, fragments: Sequence[Fragment]) -> Iterator[Block]:
    """Yield the blocks that hold the answer's rows when every row is one: no others are read."""
    first = request.offset
    last = None if request.limit is None else first + request.limit
    for fragment in fragments:
        rows = fragment.physical_rows if request.include_deleted_rows else snapshot.num_live_rows(fragment)
        start, stop = max(first, 0), rows if last is None else min(last, rows)
        if start < stop:
            if rows < fragment.physical_rows and stop - start < rows:
                live = snapshot.live_offsets(fragment)
                start, stop = int(live[start]), int(live[stop - 1]) + 1
            elif rows < fragment.physical_rows:
                stop = fragment.physical_rows
            yield from _range_blocks(snapshot, fragment, start, stop, request)
        first -= rows
        last = None if last is None else last - rows
        if last is not None and last <= 0:
            return


def _row_blocks(
    snapshot: Snapshot, fragment: Fragment, rows: RowAddressSet, predicate: Predicate | None, request: ScanRequest
) -> Iterator[Block]:
    at_once = _block_rows(snapshot, fragment, request.schema)
    live = rows.offsets(fragment.id) - snapshot.deletion_vector(fragment)
    offsets = offsets_in(live).astype(np.uint64)
    return (
        Block(fragment, 0, fragment.physical_rows, offsets[at : at + at_once], predicate)
        for at in range(0, len(offsets), at_once)
    )


def _range_blocks(
    snapshot: Snapshot, fragment: Fragment, start: int, stop: int, request: ScanRequest
) -> Iterator[Block]:
    rows = _block_rows(snapshot, fragment, request.schema)
    return (Block(fragment, at, min(at + rows, stop), None, request.predicate) for at in range(start, stop, rows))


def _block_rows(snapshot: Snapshot, fragment: Fragment, schema: Schema) -> int:
    """Return how many rows fit into a block, by what they take in the file or, where it packs them well, in memory."""
    num_rows = max(fragment.physical_rows, 1)
    decoded = max(sum(_width(field.arrow_type) for field in schema.fields), 1)
    stored = sum(file.file_size_bytes for file in fragment.files)
    if stored > max(_BLOCK_BYTES, decoded * num_rows):  # other columns may be what makes the file large
        stored = snapshot.reader(fragment).encoded_bytes(schema)
    return min(max(_BLOCK_BYTES // max(stored // num_rows, decoded), 1), _MAX_BLOCK_ROWS)


def _width(arrow_type: pa.DataType) -> int:
    if pt.is_struct(arrow_type):
        return sum(_width(field.type) for field in arrow_type)
    if pt.is_fixed_size_list(arrow_type):
        return int(arrow_type.list_size) * _width(arrow_type.value_type)
    return int(arrow_type.bit_width + 7) // 8 if pt.is_primitive(arrow_type) else _VARIABLE_BYTES


def _read_parts(
    snapshot: Snapshot,
    reader: FragmentReader,
    block: Block,
    request: ScanRequest,
    finish: Callable[[ScannedRows], T],
) -> Iterable[T]:
    """Read what of a block may match; one that is too large for a single read in halves, each when it is asked for."""
    try:
        parts = _parts_that_may_match(snapshot, reader, block) if request.use_stats else [block]
        return [finish(_read_block(snapshot, reader, part, request)) for part in parts]
    except ReadTooLarge:
        halves = block.halves()
        if not halves:
            raise
        return chain.from_iterable(_read_parts(snapshot, reader, half, request, finish) for half in halves)


def _parts_that_may_match(snapshot: Snapshot, reader: FragmentReader, block: Block) -> list[Block]:
    if block.predicate is None or block.offsets is not None:
        return [block]
    fields = {name: snapshot.schema.field(name) for name in block.predicate.columns() if name not in ROW_COLUMNS}
    runs = reader.rows_that_may_match(block.predicate, fields, block.start, block.stop)
    return [replace(block, start=start, stop=stop) for start, stop in runs]


def _read_block(snapshot: Snapshot, reader: FragmentReader, block: Block, request: ScanRequest) -> ScannedRows:
    if block.offsets is not None:
        return _read_offsets(snapshot, reader, block, block.offsets, request)
    live = None if request.include_deleted_rows else _live_mask(snapshot, block)
    if block.predicate is None:
        table = reader.read(request.schema, block.start, block.stop)
        if live is None:
            return ScannedRows(block.fragment, range(block.start, block.stop), table)
        return ScannedRows(block.fragment, _offsets_of(live, block), _filtered(table, live))
    mask = _matches(snapshot, reader, block, None)
    if live is not None:
        mask &= live
    offsets = _offsets_of(mask, block)
    return ScannedRows(block.fragment, offsets, _read_matches(reader, block, mask, offsets, request))


def _read_matches(
    reader: FragmentReader, block: Block, mask: npt.NDArray[np.bool_], offsets: Offsets, request: ScanRequest
) -> pa.Table:
    """Read the block's rows that matched: early columns whole, then filtered; late ones row by row."""
    schema, late = request.schema, request.late_columns
    if late is None:
        late = frozenset(schema.names if len(offsets) < _TAKE_BELOW * len(mask) else ())
    taken = Schema(tuple(field for field in schema.fields if field.name in late), schema.metadata)
    read = Schema(tuple(field for field in schema.fields if field.name not in late), schema.metadata)
    if not read.fields:
        return reader.take(schema, offsets)
    table = _filtered(reader.read(read, block.start, block.stop), mask)
    if not taken.fields:
        return table
    columns = dict(zip(read.names, table.columns, strict=True))
    columns |= zip(taken.names, reader.take(taken, offsets).columns, strict=True)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema.to_arrow_storage())


def _read_offsets(
    snapshot: Snapshot, reader: FragmentReader, block: Block, offsets: Offsets, request: ScanRequest
) -> ScannedRows:
    if block.predicate is not None:
        offsets = offsets[_matches(snapshot, reader, block, offsets)]
    if len(offsets) and int(offsets[-1] - offsets[0]) == len(offsets) - 1:
        table = reader.read(request.schema, int(offsets[0]), int(offsets[-1]) + 1)
    else:
        table = reader.take(request.schema, offsets)
    return ScannedRows(block.fragment, offsets, table)


def _matches(
    snapshot: Snapshot, reader: FragmentReader, block: Block, offsets: Offsets | None
) -> npt.NDArray[np.bool_]:
    """Return for each row of the block whether the predicate is true (not false, not unknown)."""
    assert block.predicate is not None
    columns = block.predicate.columns()
    names = [name for name in columns if name not in ROW_COLUMNS]
    schema, added = snapshot.schema.project(names), [name for name in columns if name in ROW_COLUMNS]
    if not columns:
        added = [ROW_ADDRESS]  # a batch of no columns would have no rows
    table = reader.read(schema, block.start, block.stop) if offsets is None else reader.take(schema, offsets)
    where = range(block.start, block.stop) if offsets is None else offsets
    return block.predicate.holds(with_row_columns(snapshot, table, block.fragment, where, added))


def _offsets_of(mask: npt.NDArray[np.bool_], block: Block) -> Offsets:
    return np.flatnonzero(mask).astype(np.uint64) + np.uint64(block.start)


def _live_mask(snapshot: Snapshot, block: Block) -> npt.NDArray[np.bool_] | None:
    """Return which rows of the block are not deleted, None if all are live."""
    deleted = snapshot.deletion_vector(block.fragment)
    inside = deleted[deleted.rank(block.start - 1) if block.start else 0 : deleted.rank(block.stop - 1)]
    if not inside:
        return None
    live = np.ones(block.stop - block.start, dtype=np.bool_)
    live[offsets_in(inside) - block.start] = False
    return live


def _filtered(table: pa.Table, mask: npt.NDArray[np.bool_]) -> pa.Table:
    return table.filter(pa.array(mask)) if table.num_columns else table  # without columns it knows no length


def empty_answer(request: ScanRequest) -> pa.Table:
    """Return an answer's columns without a row."""
    schema = request.schema.to_arrow_storage()
    return pa.schema([*schema, *map(row_field, request.row_columns)], schema.metadata).empty_table()
