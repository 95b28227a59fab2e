"""Read one block of a scan: which of its rows match, and the columns asked for of those.

Reading one block is independent of all others; deleted rows are subtracted in each, so no path through here can return
one. A column that was read to test the predicate is not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import rows_at, rows_where
from lance_ops.core.errors import ReadTooLarge
from lance_ops.core.ndarrays import BoolArray, Uint64Array
from lance_ops.core.schema import Field, Schema
from lance_ops.reading.row_columns import ROW_ADDRESS, ROW_COLUMNS
from lance_ops.reading.scan_plan import Block, ScanRequest
from lance_ops.reading.scanned_rows import ScannedRows, with_row_columns
from lance_ops.snapshot import FragmentReader, Snapshot
from lance_ops.table.rows import offsets_in

__all__ = ["read_block"]

Columns: TypeAlias = dict[str, pa.ChunkedArray]
T = TypeVar("T")

_TAKE_BELOW = 0.05  # of a block's rows match: fetch the other columns row by row


def read_block(
    snapshot: Snapshot,
    reader: FragmentReader,
    block: Block,
    request: ScanRequest,
    finish: Callable[[ScannedRows], T],
) -> Iterable[T]:
    """Read what of a block may match; one that is too large for a single read in halves, each when it is asked for."""
    try:
        parts = _parts_that_may_match(snapshot, reader, block) if request.use_stats else [block]
        return [finish(_read_part(snapshot, reader, part, request)) for part in parts]
    except ReadTooLarge:
        halves = block.halves()
        if not halves:
            raise
        return chain.from_iterable(read_block(snapshot, reader, half, request, finish) for half in halves)


def _parts_that_may_match(snapshot: Snapshot, reader: FragmentReader, block: Block) -> list[Block]:
    if block.predicate is None or block.offsets is not None or not reader.has_statistics:
        return [block]
    fields = {name: snapshot.schema.field(name) for name in block.predicate.columns() if name not in ROW_COLUMNS}
    runs = reader.rows_that_may_match(block.predicate, fields, block.start, block.stop)
    return [replace(block, start=start, stop=stop) for start, stop in runs]


def _read_part(snapshot: Snapshot, reader: FragmentReader, block: Block, request: ScanRequest) -> ScannedRows:
    if block.offsets is not None:
        return _read_offsets(snapshot, reader, block, block.offsets, request.schema)
    live = None if request.include_deleted_rows else _live_mask(snapshot, block)
    if block.predicate is not None:
        return _read_matches(snapshot, reader, block, live, request)
    table = reader.read(request.schema, block.start, block.stop)
    if live is None:
        return ScannedRows(block.fragment, range(block.start, block.stop), table)
    return ScannedRows(block.fragment, _offsets_of(live, block), _filtered(table, live))


def _read_matches(
    snapshot: Snapshot, reader: FragmentReader, block: Block, live: BoolArray | None, request: ScanRequest
) -> ScannedRows:
    """Read the block's live rows that match: early columns whole, then filtered; late ones row by row."""
    mask, tested = _test(snapshot, reader, block, None)
    if live is not None:
        mask &= live
    offsets = _offsets_of(mask, block)
    columns = _wanted_of(tested, mask, request.schema)
    del tested  # its memory is free for what follows
    late = request.late_columns
    if late is None:
        late = frozenset(request.schema.names if len(offsets) < _TAKE_BELOW * len(mask) else ())
    rest = [field for field in request.schema.fields if field.name not in columns]
    read = Schema(tuple(field for field in rest if field.name not in late))
    if read.fields:
        columns |= _columns(_filtered(reader.read(read, block.start, block.stop), mask))
    taken = Schema(tuple(field for field in rest if field.name in late))
    if taken.fields:
        columns |= _columns(reader.take(taken, offsets))
    return ScannedRows(block.fragment, offsets, _in_order(columns, request.schema))


def _read_offsets(
    snapshot: Snapshot, reader: FragmentReader, block: Block, offsets: Uint64Array, schema: Schema
) -> ScannedRows:
    """Read the rows at these offsets that match."""
    columns: Columns = {}
    if block.predicate is not None:
        mask, tested = _test(snapshot, reader, block, offsets)
        offsets, columns = offsets[mask], _wanted_of(tested, mask, schema)
    rest = Schema(tuple(field for field in schema.fields if field.name not in columns))
    if rest.fields:
        if len(offsets) and int(offsets[-1] - offsets[0]) == len(offsets) - 1:
            table = reader.read(rest, int(offsets[0]), int(offsets[-1]) + 1)
        else:
            table = reader.take(rest, offsets)
        columns |= _columns(table)
    return ScannedRows(block.fragment, offsets, _in_order(columns, schema))


def _test(
    snapshot: Snapshot, reader: FragmentReader, block: Block, offsets: Uint64Array | None
) -> tuple[BoolArray, dict[Field, pa.ChunkedArray]]:
    """Return for each row whether the predicate is true (not false, not unknown), and the columns read for that."""
    assert block.predicate is not None
    columns = block.predicate.columns()
    schema = snapshot.schema.project(name for name in columns if name not in ROW_COLUMNS)
    added = [name for name in columns if name in ROW_COLUMNS]
    if not columns:
        added = [ROW_ADDRESS]  # a batch of no columns would have no rows
    table = reader.read(schema, block.start, block.stop) if offsets is None else reader.take(schema, offsets)
    where = range(block.start, block.stop) if offsets is None else offsets
    mask = block.predicate.true_mask(with_row_columns(snapshot, table, block.fragment, where, added))
    return mask, dict(zip(schema.fields, table.columns, strict=True))


def _wanted_of(tested: Mapping[Field, pa.ChunkedArray], mask: BoolArray, schema: Schema) -> Columns:
    """Return those of the tested columns that are wanted, of the rows that matched."""
    wanted = [field for field in schema.fields if field in tested]
    if not wanted:
        return {}
    table = pa.Table.from_arrays([tested[field] for field in wanted], names=[field.name for field in wanted])
    places = np.flatnonzero(mask)
    few = len(places) < _TAKE_BELOW * len(mask)
    return _columns(rows_at(table, places) if few else _filtered(table, mask))


def _columns(table: pa.Table) -> Columns:
    return dict(zip(table.schema.names, table.columns, strict=True))


def _in_order(columns: Columns, schema: Schema) -> pa.Table:
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema.to_arrow_storage())


def _offsets_of(mask: BoolArray, block: Block) -> Uint64Array:
    return np.flatnonzero(mask).astype(np.uint64) + np.uint64(block.start)


def _live_mask(snapshot: Snapshot, block: Block) -> BoolArray | None:
    """Return which rows of the block are not deleted, None if all are live."""
    deleted = snapshot.deletion_vector(block.fragment)
    inside = deleted[deleted.rank(block.start - 1) if block.start else 0 : deleted.rank(block.stop - 1)]
    if not inside:
        return None
    live = np.ones(block.stop - block.start, dtype=np.bool_)
    live[offsets_in(inside) - block.start] = False
    return live


def _filtered(table: pa.Table, mask: BoolArray) -> pa.Table:
    return rows_where(table, mask) if table.num_columns else table  # without columns it knows no length
