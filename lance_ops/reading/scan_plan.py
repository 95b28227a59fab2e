"""Plan a scan: choose the blocks of rows, each within one fragment, and the rows that indices find.

A block is a range of a fragment's physical rows, or scattered rows that an index found. Rows that come in long
runs and are still to be tested, as those of zones, are ranges too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, chain
from typing import TYPE_CHECKING, overload

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from pyroaring import BitMap

from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.indices import RowAddressSet
from lance_ops.reading.index_lookup import IndexLookup, look_up
from lance_ops.reading.row_columns import ROW_ADDRESS, ROW_ID, ROW_OFFSET
from lance_ops.reading.scan_trace import current_trace
from lance_ops.snapshot import Snapshot, check_rows_are_stored, projected_sizes
from lance_ops.table import Fragment
from lance_ops.table.rows import long_runs_in, offsets_in

if TYPE_CHECKING:
    from lance_ops.core.predicate import Predicate

__all__ = ["BLOCK_BYTES", "Block", "Blocks", "ScanPlan", "ScanRequest", "check_is_stored", "plan_scan"]


BLOCK_BYTES = 16 * 1024**2
"""Approximate memory of a block's rows, unless it has thousands of columns."""

_MIN_COLUMN_BYTES, _MAX_WIDE_BLOCK_BYTES = 8 * 1024, 3 * BLOCK_BYTES
"""What a block of thousands of columns should hold of each, and the most that it then holds of all.

Chunks of 1,024 values are decoded whole, for every block with some of their rows, so few rows a block waste work.
"""

_MAX_BLOCK_ROWS = 1024**2
_LEAST_RUN_ROWS = 1024
"""Rows to test are read as ranges if they come in longer runs on average."""

_VARIABLE_BYTES = 16  # the least that a value without fixed width is counted as


@dataclass(frozen=True)
class ScanRequest:
    """What a scan returns. `limit` and `offset` count rows of the answer.

    `fragment_ids` selects fragments and their order, `rows` selects rows in them; None means all. `row_ranges` names
    fragments by id, with the first physical row to look at and the one after the last; then a limit needs a predicate.
    `version_columns` are
    the names in `VERSION_COLUMNS` to add, and `with_row_offset` adds the rows' positions. An answer without any column
    gets the row addresses, since a table without columns has no rows.

    `readahead` is the number of blocks that are read ahead, of at most `buffer_bytes` together; small blocks that are
    read together count as one. `late_columns` are read after the predicate was tested, and only for matching rows; None
    chooses all columns when few rows match. Columns that the predicate was tested on are not read again. With
    `indexed_only`, fragments that a searched index does not cover are left out.
    """

    schema: Schema
    predicate: Predicate | None = None
    limit: int | None = None
    offset: int = 0
    with_row_id: bool = False
    with_row_address: bool = False
    version_columns: tuple[str, ...] = ()
    with_row_offset: bool = False
    include_deleted_rows: bool = False
    fragment_ids: tuple[int, ...] | None = None
    rows: RowAddressSet | None = None
    row_ranges: tuple[tuple[int, int, int], ...] = ()
    use_scalar_index: bool = True
    use_stats: bool = True
    indexed_only: bool = False
    late_columns: frozenset[str] | None = None
    readahead: int | None = None
    buffer_bytes: int | None = None

    @property
    def row_columns(self) -> tuple[str, ...]:
        """The row columns of the answer, which come after the columns of the schema."""
        requested = self.asked_row_columns
        return requested if requested or self.schema.fields else (ROW_ADDRESS,)

    @property
    def asked_row_columns(self) -> tuple[str, ...]:
        """The row columns that the caller requested."""
        options = (
            (ROW_ID, self.with_row_id),
            (ROW_ADDRESS, self.with_row_address),
            (ROW_OFFSET, self.with_row_offset),
        )
        return (*(name for name, is_requested in options if is_requested), *self.version_columns)


@dataclass(frozen=True)
class Block:
    """Rows of one fragment to read: all from `start` to `stop`, or only the live rows that are `chosen`.

    `predicate` is what must still be tested on them.
    """

    fragment: Fragment
    start: int
    stop: int
    chosen: BitMap | None
    predicate: Predicate | None

    @property
    def offsets(self) -> Uint64Array | None:
        """The chosen rows, made anew each time: a plan holds those of all fragments, and an offset takes 8 bytes."""
        return None if self.chosen is None else offsets_in(self.chosen).astype(np.uint64)

    def __len__(self) -> int:
        return self.stop - self.start if self.chosen is None else len(self.chosen)

    def part(self, first: int, num_rows: int) -> Block:
        """Return the block of at most `num_rows` of the rows, from row `first` of the block on."""
        if self.chosen is not None:
            return replace(self, chosen=self.chosen[first : first + num_rows])
        start = self.start + first
        return replace(self, start=start, stop=min(start + num_rows, self.stop))

    def cut(self, num_rows: int) -> Iterator[Block]:
        """Yield the rows as blocks of `num_rows`; the last may have fewer."""
        if 0 < len(self) <= num_rows:
            return iter((self,))
        return (self.part(first, num_rows) for first in range(0, len(self), num_rows))


class Blocks(Sequence[Block]):
    """Blocks that are made when they are asked for: a few bytes of a manifest may stand for millions of them.

    Each part of a plan is rows of one fragment, with the number of rows of a block.
    """

    def __init__(self, parts: Iterable[tuple[Block, int]]) -> None:
        self.parts = tuple(part for part in parts if len(part[0]))
        self._ends = tuple(accumulate(-(-len(rows) // block_rows) for rows, block_rows in self.parts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Block, ...]: ...
    def __getitem__(self, index: int | slice) -> Block | tuple[Block, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(len(self))[index])
        at = range(len(self))[index]
        slot = bisect_right(self._ends, at)
        rows, block_rows = self.parts[slot]
        return rows.part((at - (self._ends[slot - 1] if slot else 0)) * block_rows, block_rows)

    @property
    def largest_share(self) -> float:
        """The rows of the largest block, as a share of those that fit into a block."""
        return max((min(len(rows) / block_rows, 1) for rows, block_rows in self.parts), default=1)

    def __iter__(self) -> Iterator[Block]:
        return chain.from_iterable(rows.cut(block_rows) for rows, block_rows in self.parts)


@dataclass(frozen=True)
class ScanPlan:
    """The blocks in the order of the answer's rows, and the result of the index search, if there was one.

    `offset` is the number of rows to skip in the blocks.
    """

    request: ScanRequest
    blocks: Blocks
    offset: int
    lookup: IndexLookup | None = None

    @property
    def num_fragments(self) -> int:
        """The number of fragments that are read."""
        return len({rows.fragment.id for rows, _ in self.blocks.parts})

    @property
    def num_physical_rows(self) -> int:
        """The number of rows in the blocks, of which the predicate selects some."""
        return sum(len(rows) for rows, _ in self.blocks.parts)

    @property
    def largest_block_bytes(self) -> int:
        """Approximate memory of the rows of the largest block."""
        return max(round(self.blocks.largest_share * _block_bytes(self.request.schema)), 1)

    def explain(self) -> str:
        """Describe the plan, one line for each node."""
        names = ", ".join(self.request.schema.names)
        predicate = self.request.predicate.to_sql() if self.request.predicate else "--"
        lines = [f"LanceRead: projection=[{names}], num_fragments={self.num_fragments}, full_filter={predicate}"]
        if self.lookup:
            lines.append(f"  ScalarIndexQuery: query={self.lookup.describe()}")
            scanned = len({rows.fragment.id for rows, _ in self.blocks.parts} - set(self.lookup.covered))
            lines.append(f"    unindexed fragments scanned: {scanned}")
        return "\n".join(lines)


def plan_scan(snapshot: Snapshot, request: ScanRequest) -> ScanPlan:
    """Choose the blocks; search indices if they can answer a part of the predicate.

    Raises `InvalidInput` for a fragment that the version does not have, and `ReadTooLarge` as `check_is_stored` does if
    there is a predicate, because a scan for the first match may go through all rows.
    """
    plan = _plan(snapshot, request)
    if request.row_ranges:
        assert request.predicate is not None or (request.limit is None and not request.offset)
        plan = replace(plan, blocks=Blocks(_within(request.row_ranges, plan.blocks.parts)))
    if request.predicate is not None:
        check_is_stored(snapshot, plan)
    return plan


def check_is_stored(snapshot: Snapshot, plan: ScanPlan) -> None:
    """Raise `ReadTooLarge` if the plan has far more rows than its fragments' files can hold.

    Whoever reads all rows of a plan before giving an answer calls this first.
    """
    fragments = (rows.fragment for rows, _ in plan.blocks.parts)
    check_rows_are_stored(snapshot, plan.num_physical_rows, fragments)


def _plan(snapshot: Snapshot, request: ScanRequest) -> ScanPlan:
    if request.rows is not None:
        chosen = _chosen_parts(snapshot, request, request.rows, frozenset(), request.predicate)
        return ScanPlan(request, _blocks(snapshot, request.schema, chosen), request.offset)
    if request.predicate is None:
        fragments = _fragments(snapshot, request.fragment_ids)
        within = _rows_within_limit(snapshot, request, fragments)
        return ScanPlan(request, _blocks(snapshot, request.schema, within), 0)
    lookup = None
    if request.use_scalar_index and not request.include_deleted_rows:
        lookup = _look_up(snapshot, request.predicate, request.fragment_ids)
    if lookup is None:
        fragments = _fragments(snapshot, request.fragment_ids)
        whole = (_row_range(fragment, 0, fragment.physical_rows, request) for fragment in fragments)
        return ScanPlan(request, _blocks(snapshot, request.schema, whole), request.offset)
    scanned = frozenset() if request.indexed_only else snapshot.fragments_by_id.keys() - lookup.covered
    found = _chosen_parts(snapshot, request, lookup.rows, scanned, lookup.remainder)
    return ScanPlan(request, _blocks(snapshot, request.schema, found), request.offset, lookup)


def _within(
    row_ranges: Iterable[tuple[int, int, int]], parts: Iterable[tuple[Block, int]]
) -> Iterator[tuple[Block, int]]:
    """Yield the rows of each part that lie in the range of their fragment."""
    ranges = {fragment_id: (first, end) for fragment_id, first, end in row_ranges}
    for rows, block_rows in parts:
        first, end = ranges.get(rows.fragment.id, (rows.start, rows.stop))
        if rows.chosen is None:
            first, end = min(max(first, rows.start), rows.stop), min(end, rows.stop)
            yield rows.part(first - rows.start, max(end - first, 0)), block_rows
        else:
            yield replace(rows, chosen=rows.chosen & BitMap(range(first, end))), block_rows


def _look_up(snapshot: Snapshot, predicate: Predicate, fragment_ids: tuple[int, ...] | None) -> IndexLookup | None:
    trace = current_trace()
    if trace is None:
        return look_up(snapshot, predicate, fragment_ids)
    with trace.index.measured():
        lookup = look_up(snapshot, predicate, fragment_ids)
    trace.index.num_rows += 0 if lookup is None else len(lookup.rows)
    return lookup


def _fragments(snapshot: Snapshot, fragment_ids: tuple[int, ...] | None) -> Sequence[Fragment]:
    if fragment_ids is None:
        return snapshot.fragments
    return [snapshot.fragments_by_id[fragment_id] for fragment_id in _fragment_ids(snapshot, fragment_ids)]


def _fragment_ids(snapshot: Snapshot, fragment_ids: tuple[int, ...] | None) -> Iterable[int]:
    """Return the ids of the requested fragments, or of all, in the order in which they are scanned."""
    if fragment_ids is None:
        return snapshot.fragments_by_id
    requested = dict.fromkeys(fragment_ids)
    unknown = requested.keys() - snapshot.fragments_by_id.keys()
    if unknown:
        raise InvalidInput(f"{snapshot.uri}: version {snapshot.version} has no fragment {min(unknown)}")
    return requested


def _rows_within_limit(snapshot: Snapshot, request: ScanRequest, fragments: Sequence[Fragment]) -> Iterator[Block]:
    """Yield the parts that hold rows `offset` to `offset + limit` of a scan without a predicate."""
    first, skipped = request.offset, 0
    if first and fragments is snapshot.fragments and not request.include_deleted_rows:
        ends = snapshot.live_row_ends
        skipped = int(ends.searchsorted(first, side="right"))
        first -= int(ends[skipped - 1]) if skipped else 0
    last = None if request.limit is None else first + request.limit
    for fragment in (fragments[at] for at in range(skipped, len(fragments))):
        rows = fragment.physical_rows if request.include_deleted_rows else snapshot.num_live_rows(fragment)
        start, stop = max(first, 0), rows if last is None else min(last, rows)
        if start < stop:
            if rows < fragment.physical_rows and stop - start < rows:
                start, last_row = snapshot.live_offsets_at(fragment, np.array([start, stop - 1])).tolist()
                stop = last_row + 1
            elif rows < fragment.physical_rows:
                stop = fragment.physical_rows
            yield _row_range(fragment, start, stop, request)
        first -= rows
        last = None if last is None else last - rows
        if last is not None and last <= 0:
            return


def _chosen_parts(
    snapshot: Snapshot,
    request: ScanRequest,
    rows: RowAddressSet,
    scanned: AbstractSet[int],
    remainder: Predicate | None,
) -> Iterator[Block]:
    """Yield the live ones of `rows`, of which `remainder` is tested, and all rows of the `scanned` fragments.

    No other fragment is decoded, and no deletion vector of another fragment is read.
    """
    wanted = rows.bitmaps.keys() | scanned
    ids = _fragment_ids(snapshot, request.fragment_ids)
    fragments = [snapshot.fragments_by_id[fragment_id] for fragment_id in ids if fragment_id in wanted]
    snapshot.read_deletion_vectors(fragment for fragment in fragments if fragment.id not in scanned)
    for fragment in fragments:
        if fragment.id in scanned:
            yield _row_range(fragment, 0, fragment.physical_rows, request)
        else:
            yield from _chosen_rows(snapshot, fragment, rows, remainder, request)


def _chosen_rows(
    snapshot: Snapshot, fragment: Fragment, rows: RowAddressSet, predicate: Predicate | None, request: ScanRequest
) -> Iterator[Block]:
    found = rows.offsets(fragment.id)
    takes_ranges = predicate is not None and not request.include_deleted_rows
    if rows.exact and (len(found) < _LEAST_RUN_ROWS or found.max() >= fragment.physical_rows):
        takes_ranges = False  # few rows are read together with others; rows that do not exist raise an error
    runs = long_runs_in(found, _LEAST_RUN_ROWS) if takes_ranges else None
    if runs is None:
        yield Block(fragment, 0, fragment.physical_rows, found - snapshot.deletion_vector(fragment), predicate)
        return
    for start, stop in runs:  # the reader of a range leaves out the deleted rows
        yield Block(fragment, start, min(stop, fragment.physical_rows), None, predicate)


def _row_range(fragment: Fragment, start: int, stop: int, request: ScanRequest) -> Block:
    return Block(fragment, start, stop, None, request.predicate)


def _blocks(snapshot: Snapshot, schema: Schema, parts: Iterable[Block]) -> Blocks:
    """Cut the parts into blocks of as many rows as fit, by their size in the file or in memory, whichever is larger.

    A few files are opened at most, however many fragments there are.
    """
    row_bytes = _decoded_row_bytes(schema)
    rows = [part for part in parts if len(part)]
    stored = {part.fragment.id: sum(file.file_size_bytes for file in part.fragment.files) for part in rows}
    large = {  # other columns may make these files large
        part.fragment.id: part.fragment
        for part in rows
        if stored[part.fragment.id] > max(BLOCK_BYTES, row_bytes * part.fragment.physical_rows)
    }
    if large:
        stored |= projected_sizes(snapshot, [*large.values()], schema)
    return Blocks((part, _block_rows(part.fragment, stored[part.fragment.id], schema)) for part in rows)


def _block_rows(fragment: Fragment, stored_bytes: int, schema: Schema) -> int:
    row_bytes = max(stored_bytes // max(fragment.physical_rows, 1), _decoded_row_bytes(schema))
    return min(max(_block_bytes(schema) // row_bytes, 1), _MAX_BLOCK_ROWS)


def _block_bytes(schema: Schema) -> int:
    return min(max(len(schema.fields) * _MIN_COLUMN_BYTES, BLOCK_BYTES), _MAX_WIDE_BLOCK_BYTES)


@lru_cache(maxsize=64)
def _decoded_row_bytes(schema: Schema) -> int:
    """Return the bytes of a row in memory, at least 1, with a guess for variable-width values."""
    return max(sum(_width(field.arrow_type) for field in schema.fields), 1)


def _width(arrow_type: pa.DataType) -> int:
    if pt.is_struct(arrow_type):
        return sum(_width(field.type) for field in arrow_type)
    if pt.is_fixed_size_list(arrow_type):
        return int(arrow_type.list_size) * _width(arrow_type.value_type)
    return int(arrow_type.bit_width + 7) // 8 if pt.is_primitive(arrow_type) else _VARIABLE_BYTES
