"""Plan a scan: which blocks of rows to look at, and what an index contributes.

A plan lists blocks: ranges of a fragment's physical rows, or the scattered offsets that an index named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.predicate import Predicate
from lance_ops.core.schema import Schema
from lance_ops.indices import RowAddressSet
from lance_ops.reading.index_lookup import IndexLookup, look_up
from lance_ops.reading.row_columns import ROW_ADDRESS, ROW_ID
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import offsets_in

__all__ = ["BLOCK_BYTES", "Block", "ScanPlan", "ScanRequest", "plan_scan"]


BLOCK_BYTES = 16 * 1024**2
"""What a block's rows are to take in memory, about."""

_MAX_BLOCK_ROWS = 1024**2
_VARIABLE_BYTES = 16  # what a value of no fixed width is taken for where its file says less


@dataclass(frozen=True)
class ScanRequest:
    """What to return. `limit` and `offset` count rows of the answer.

    Of `fragment_ids`, in this order, only `rows`; None means all. `version_columns` are those of `VERSION_COLUMNS` to
    add. Rows of no columns at all come with their addresses, since a table must have a column to have rows.

    `readahead` is how many blocks are read before they are asked for, of at most `buffer_bytes` together. The columns
    in `late_columns` are read after the predicate was tested, and only where it is true, but for those it was tested
    on; None: those of which few are needed. With `indexed_only`, fragments that an index in use does not cover are left
    out.
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
    offsets: Uint64Array | None
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
    if stored > max(BLOCK_BYTES, decoded * num_rows):  # other columns may be what makes the file large
        stored = snapshot.reader(fragment).encoded_bytes(schema)
    return min(max(BLOCK_BYTES // max(stored // num_rows, decoded), 1), _MAX_BLOCK_ROWS)


def _width(arrow_type: pa.DataType) -> int:
    if pt.is_struct(arrow_type):
        return sum(_width(field.type) for field in arrow_type)
    if pt.is_fixed_size_list(arrow_type):
        return int(arrow_type.list_size) * _width(arrow_type.value_type)
    return int(arrow_type.bit_width + 7) // 8 if pt.is_primitive(arrow_type) else _VARIABLE_BYTES
