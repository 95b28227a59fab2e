"""Read one block of a scan, rows of one fragment: test them, and read the requested columns of those that match.

Blocks are independent of each other. Every path subtracts the deleted rows, so a scan never returns one unless it is
asked to. A column that was read to test the predicate is not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import rows_at, rows_where
from lance_ops.core.errors import InvalidInput, ReadTooLarge
from lance_ops.core.ndarrays import BoolArray, Uint64Array
from lance_ops.core.schema import Field, Schema
from lance_ops.file import Budget
from lance_ops.reading.row_columns import ROW_ADDRESS, SELECTABLE_ROW_COLUMNS
from lance_ops.reading.scan_plan import BLOCK_BYTES, Block, ScanRequest
from lance_ops.reading.scanned_rows import RowOffsets, ScannedRows, with_row_columns
from lance_ops.snapshot import FragmentReader, Snapshot
from lance_ops.table.rows import offsets_in

if TYPE_CHECKING:
    from lance_ops.core.predicate import Predicate

__all__ = ["MAX_BLOCK_BYTES", "RowReader", "read_block", "read_halves", "read_live", "read_offsets"]

Columns: TypeAlias = dict[str, pa.ChunkedArray]
T = TypeVar("T")

MAX_BLOCK_BYTES = 4 * BLOCK_BYTES
"""The most that a block of several rows may produce. A plan only estimates the bytes of variable-width values."""

_MAX_PART_BYTES = 2 * BLOCK_BYTES
"""As `MAX_BLOCK_BYTES`, for a part of a block that was too large, which is read while other blocks wait."""

_TAKE_BELOW = 0.05  # if a smaller share of the block's rows matches, read the other columns row by row


class RowReader(Protocol):
    """Reads rows by their offsets, of one fragment or of several that are laid end to end."""

    def read(self, schema: Schema, start: int, stop: int, *, budget: Budget | None) -> pa.Table: ...
    def take(self, schema: Schema, offsets: Uint64Array, *, budget: Budget | None) -> pa.Table: ...


def read_block(
    snapshot: Snapshot,
    reader: FragmentReader,
    block: Block,
    request: ScanRequest,
    finish: Callable[[ScannedRows], T],
    budget: Budget | None,
) -> Iterable[T]:
    """Read a block's matching rows. Raises `ReadTooLarge` if they exceed the budget; see `read_halves`.

    Without a budget, a read has what the sizes of the files allow.
    """
    parts = _parts_that_may_match(snapshot, reader, block) if request.use_stats else [block]
    return [finish(_read_part(snapshot, reader, part, request, budget)) for part in parts]


def read_halves(
    snapshot: Snapshot, reader: FragmentReader, block: Block, request: ScanRequest, finish: Callable[[ScannedRows], T]
) -> Iterator[T]:
    """Read a block that is too large for one read in parts, lazily, one by one.

    A part of several rows may take `_MAX_PART_BYTES`. A single row may take what the sizes of its files allow: it
    cannot be cut.
    """
    for part in block.cut(-(-len(block) // 2)):
        budget = None if len(part) == 1 else Budget(0, _MAX_PART_BYTES)
        try:
            found = read_block(snapshot, reader, part, request, finish, budget)
        except ReadTooLarge:
            if len(part) == 1:
                raise
            found = read_halves(snapshot, reader, part, request, finish)
        yield from found
        del found  # frees its memory before the next part is read


def _parts_that_may_match(snapshot: Snapshot, reader: FragmentReader, block: Block) -> list[Block]:
    if block.predicate is None or block.chosen is not None or not reader.has_statistics:
        return [block]
    fields = {
        name: snapshot.schema.field(name) for name in block.predicate.columns() if name not in SELECTABLE_ROW_COLUMNS
    }
    runs = reader.rows_that_may_match(block.predicate, fields, block.start, block.stop)
    return [replace(block, start=start, stop=stop) for start, stop in runs]


def _read_part(
    snapshot: Snapshot, reader: FragmentReader, block: Block, request: ScanRequest, budget: Budget | None
) -> ScannedRows:
    chosen = block.offsets
    if chosen is not None:
        found = read_offsets(snapshot, reader, block, chosen, request.schema, budget)
        return ScannedRows(block.fragment, *found)
    live = None if request.include_deleted_rows else _live_mask(snapshot, block)
    offsets, table = read_live(snapshot, reader, block, live, request, budget)
    return ScannedRows(block.fragment, offsets, table)


def read_live(
    snapshot: Snapshot,
    reader: RowReader,
    block: Block,
    live: BoolArray | None,
    request: ScanRequest,
    budget: Budget | None,
) -> tuple[RowOffsets, pa.Table]:
    """Return the offsets and columns of a block's rows that are in `live` and match the predicate; None means all.

    With a predicate, early columns are read whole and then filtered, late columns row by row. The offsets are those of
    `reader`; only a predicate on row columns uses the block's fragment.
    """
    if block.predicate is None:
        table = reader.read(request.schema, block.start, block.stop, budget=budget)
        if live is None:
            return range(block.start, block.stop), table
        return _offsets_of(live, block), _filtered(table, live)
    mask, tested = _test(snapshot, reader, block, None, live, budget)
    offsets = _offsets_of(mask, block)
    columns = _requested_columns(tested, mask, request.schema)
    del tested  # frees its memory before more columns are read
    late = request.late_columns
    if late is None:
        late = frozenset(request.schema.names if len(offsets) < _TAKE_BELOW * len(mask) else ())
    rest = [field for field in request.schema.fields if field.name not in columns]
    early_schema = Schema(tuple(field for field in rest if field.name not in late))
    if early_schema.fields:
        early = reader.read(early_schema, block.start, block.stop, budget=budget)
        columns |= _columns(_filtered(early, mask))
    late_schema = Schema(tuple(field for field in rest if field.name in late))
    if late_schema.fields:
        columns |= _columns(reader.take(late_schema, offsets, budget=budget))
    return offsets, _in_order(columns, request.schema)


def read_offsets(
    snapshot: Snapshot,
    reader: RowReader,
    block: Block,
    offsets: Uint64Array,
    schema: Schema,
    budget: Budget | None,
) -> tuple[Uint64Array, pa.Table]:
    """Return those of the offsets whose rows match the block's predicate, and the columns of these rows.

    The offsets are those of `reader`; only a predicate on row columns uses the block's fragment.
    """
    columns: Columns = {}
    if block.predicate is not None:
        mask, tested = _test(snapshot, reader, block, offsets, None, budget)
        offsets, columns = offsets[mask], _requested_columns(tested, mask, schema)
    rest = Schema(tuple(field for field in schema.fields if field.name not in columns))
    if rest.fields:
        if len(offsets) and int(offsets[-1] - offsets[0]) == len(offsets) - 1:
            table = reader.read(rest, int(offsets[0]), int(offsets[-1]) + 1, budget=budget)
        else:
            table = reader.take(rest, offsets, budget=budget)
        columns |= _columns(table)
    return offsets, _in_order(columns, schema)


def _test(
    snapshot: Snapshot,
    reader: RowReader,
    block: Block,
    offsets: Uint64Array | None,
    live: BoolArray | None,
    budget: Budget | None,
) -> tuple[BoolArray, dict[Field, pa.ChunkedArray]]:
    """Return a mask of the live rows for which the predicate is true, and the columns that were read to test it."""
    assert block.predicate is not None
    columns = block.predicate.columns()
    schema = snapshot.schema.project(name for name in columns if name not in SELECTABLE_ROW_COLUMNS)
    row_columns = [name for name in columns if name in SELECTABLE_ROW_COLUMNS]
    if not columns:
        row_columns = [ROW_ADDRESS]  # a table without columns has no rows
    if offsets is None:
        table = reader.read(schema, block.start, block.stop, budget=budget)
    else:
        table = reader.take(schema, offsets, budget=budget)
    rows = range(block.start, block.stop) if offsets is None else offsets
    tested = with_row_columns(snapshot, table, block.fragment, rows, row_columns)
    return _true_mask(block.predicate, tested, live), dict(zip(schema.fields, table.columns, strict=True))


def _true_mask(predicate: Predicate, rows: pa.Table, live: BoolArray | None) -> BoolArray:
    """Return for which live rows the predicate is true; all are live if `live` is None.

    Deleted rows are tested too, because that costs less than to leave them out, but do not matter for errors.
    """
    try:
        mask = predicate.true_mask(rows)
    except InvalidInput:
        if live is None:
            raise
        mask = np.zeros(len(live), np.bool_)
        mask[live] = predicate.true_mask(rows_where(rows, live))
    return mask if live is None else mask & live


def _requested_columns(tested: Mapping[Field, pa.ChunkedArray], mask: BoolArray, schema: Schema) -> Columns:
    """Return the tested columns that `schema` contains, of the rows that matched."""
    requested = [field for field in schema.fields if field in tested]
    if not requested:
        return {}
    table = pa.Table.from_arrays([tested[field] for field in requested], names=[field.name for field in requested])
    positions = np.flatnonzero(mask)
    few = len(positions) < _TAKE_BELOW * len(mask)
    return _columns(rows_at(table, positions) if few else _filtered(table, mask))


def _columns(table: pa.Table) -> Columns:
    return dict(zip(table.schema.names, table.columns, strict=True))


def _in_order(columns: Columns, schema: Schema) -> pa.Table:
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema.to_arrow_storage())


def _offsets_of(mask: BoolArray, block: Block) -> Uint64Array:
    offsets: Uint64Array = np.flatnonzero(mask).view(np.uint64)  # none is negative, so no copy is needed
    if block.start:
        offsets += np.uint64(block.start)
    return offsets


def _live_mask(snapshot: Snapshot, block: Block) -> BoolArray | None:
    """Return a mask of the block's live rows; None if all are live."""
    inside = snapshot.deletion_vector(block.fragment)
    if inside and (block.start or inside.max() >= block.stop):  # most blocks are whole fragments: no copy for these
        inside = inside[inside.rank(block.start - 1) if block.start else 0 : inside.rank(block.stop - 1)]
    if not inside:
        return None
    live = np.ones(block.stop - block.start, dtype=np.bool_)
    live[offsets_in(inside) - block.start] = False
    return live


def _filtered(table: pa.Table, mask: BoolArray) -> pa.Table:
    if not table.num_columns:  # it has no length, so it cannot be filtered
        return table
    return rows_where(table, mask)
