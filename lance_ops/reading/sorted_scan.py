"""Answer a scan in the order of given columns, in bounded memory.

If the limit and the offset are small, a scan of the sort columns alone finds the first rows. It holds those rows and
about as many candidates; a take then reads the other columns. If the limit or the offset is large, or the kept keys
exceed a fifth of a budget, all rows are sorted whole, through the local disk if they exceed the budget. Either way ties
keep the order of an unsorted scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops import indices
from lance_ops.core import predicate
from lance_ops.core.arrow import numbers_of
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.schema import ColumnOrdering, Schema
from lance_ops.file import copy_array
from lance_ops.reading.row_columns import ROW_ADDRESS
from lance_ops.reading.scan_execution import empty_answer, limit_rows, scan_whole
from lance_ops.reading.scan_plan import BLOCK_BYTES, ScanRequest
from lance_ops.reading.take import take_addresses
from lance_ops.snapshot import FREE_SORTED_BYTES, Snapshot, limit_held_bytes, projected_sizes

__all__ = ["check_orderings", "describe_order", "scan_sorted", "without_limit"]

MOST_KEPT_ROWS = 1 << 16
"""The largest limit for which the first rows are kept in memory while the scan reads the others."""

_COMPARED_AT_ONCE = 1 << 16
"""Rows whose first column is compared at once with that of the last kept row."""

_TAKEN_AT_ONCE = 4096
"""The most rows of a take; fewer if they are large."""


def check_orderings(schema: Schema, orderings: Sequence[ColumnOrdering]) -> None:
    """Raise `InvalidInput` for an unknown column or one in a list, `UnsupportedFeature` for values without an order."""
    for ordering in orderings:
        schema.single_valued_lineage(ordering.column_name, "order_by")
        column = _column(schema, ordering.column_name)
        if not (indices.is_sortable(column.type) or indices.is_nested_sortable(column.type)):
            raise UnsupportedFeature(f"order_by on values of {column.arrow_type}", f"column {column.name!r}")


def scan_sorted(
    snapshot: Snapshot,
    request: ScanRequest,
    orderings: Sequence[ColumnOrdering],
    sort_bytes: int | None = None,
) -> Iterator[pa.Table]:
    """Yield the answer in order, in parts; `request.schema` must contain the columns of `orderings`.

    `sort_bytes` bounds the memory of the rows that are sorted; by default `DEFAULT_SORT_BYTES` does.
    """
    order = indices.RowOrder(
        tuple(indices.Direction(ordering.ascending, ordering.nulls_first) for ordering in orderings)
    )
    columns = [_column(snapshot.schema, ordering.column_name) for ordering in orderings]
    last = None if request.limit is None else request.offset + request.limit
    sort_bytes = sort_bytes or indices.DEFAULT_SORT_BYTES
    if last is not None and last <= MOST_KEPT_ROWS and not request.include_deleted_rows:
        return _first_rows(snapshot, request, order, columns, last, sort_bytes)
    return _all_rows(snapshot, request, order, columns, sort_bytes)


def without_limit(request: ScanRequest) -> ScanRequest:
    """Return the request without limit and offset: all its rows must be read before the first rows are known."""
    return replace(request, limit=None, offset=0)


def describe_order(orderings: Sequence[ColumnOrdering], request: ScanRequest) -> str:
    """Return one line that says how the rows will be sorted."""
    keys = ", ".join(
        f"{ordering.column_name} {'ASC' if ordering.ascending else 'DESC'} "
        f"NULLS {'FIRST' if ordering.nulls_first else 'LAST'}"
        for ordering in orderings
    )
    last = "" if request.limit is None else f" TopK(fetch={request.offset + request.limit}),"
    return f"SortExec:{last} expr=[{keys}]"


def _first_rows(
    snapshot: Snapshot,
    request: ScanRequest,
    order: indices.RowOrder,
    columns: Sequence[predicate.Column],
    last: int,
    sort_bytes: int,
) -> Iterator[pa.Table]:
    addresses = _first_addresses(snapshot, request, order, columns, last, indices.most_run_bytes(sort_bytes))
    if addresses is None:
        yield from _all_rows(snapshot, request, order, columns, sort_bytes)
        return
    taken_at_once = _rows_taken_at_once(snapshot, request.schema)
    for start in range(request.offset, len(addresses), taken_at_once):
        yield take_addresses(snapshot, addresses[start : start + taken_at_once], request)


def _rows_taken_at_once(snapshot: Snapshot, schema: Schema) -> int:
    """Return how many rows fit into a block, by their mean size in the files.

    If whole files are small, their size decides. Otherwise the metadata of some files tells the size of the columns of
    `schema`, because other columns may fill the files.
    """
    num_rows = sum(fragment.physical_rows for fragment in snapshot.fragments)
    size_bytes = sum(file.file_size_bytes for fragment in snapshot.fragments for file in fragment.files)
    if size_bytes * _TAKEN_AT_ONCE > num_rows * BLOCK_BYTES:
        size_bytes = sum(projected_sizes(snapshot, snapshot.fragments, schema).values())
    return min(max(num_rows * BLOCK_BYTES // max(size_bytes, 1), 1), _TAKEN_AT_ONCE)


def _first_addresses(
    snapshot: Snapshot,
    request: ScanRequest,
    order: indices.RowOrder,
    columns: Sequence[predicate.Column],
    last: int,
    most_bytes: int,
) -> Uint64Array | None:
    """Return the addresses of the first rows, in order; None if their keys take more than `most_bytes`."""
    keys = replace(
        without_limit(request),
        schema=snapshot.schema.project(column.name for column in columns),
        with_row_id=False,
        with_row_address=True,
        version_columns=(),
        with_row_offset=False,
    )
    first = _FirstRows(order, last, most_bytes)
    for table in scan_whole(snapshot, keys) if last else ():
        for batch in table.to_batches(max_chunksize=_COMPARED_AT_ONCE):
            first.add(_keyed(batch, columns, order, [ROW_ADDRESS]))
            if first.is_too_large:
                return None
    kept = first.rows()
    return np.empty(0, np.uint64) if kept is None else numbers_of(kept.column(ROW_ADDRESS))


class _FirstRows:
    """Keeps the first rows, in order, of those that are added.

    Added rows are gathered, so that the kept rows are not sorted and copied for every small batch.
    """

    def __init__(self, order: indices.RowOrder, most_rows: int, most_bytes: int) -> None:
        self._order = order
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self._kept: pa.RecordBatch | None = None
        self._added: list[pa.RecordBatch] = []
        self._added_rows, self._added_bytes = 0, 0

    @property
    def is_too_large(self) -> bool:
        """Whether the kept rows take more than `most_bytes`."""
        return self._kept is not None and self._kept.nbytes > self._most_bytes

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows that come after those that were added before, in the order of equal rows."""
        if self._kept is not None and self._kept.num_rows == self._most_rows:
            rows = self._order.without_later(rows, self._kept)
        if not rows.num_rows:
            return
        self._added.append(rows)
        self._added_rows += rows.num_rows
        self._added_bytes += rows.nbytes
        if self._added_rows >= self._most_rows or self._added_bytes > self._most_bytes:
            self._sort_added()

    def rows(self) -> pa.RecordBatch | None:
        """Return the first of all rows so far; None if none were added."""
        if self._added:
            self._sort_added()
        return self._kept

    def _sort_added(self) -> None:
        rows = pa.concat_batches([self._kept, *self._added] if self._kept is not None else self._added)
        self._added.clear()
        self._added_rows, self._added_bytes = 0, 0
        self._kept = rows.take(self._order.indices(rows)[: self._most_rows])


def _all_rows(
    snapshot: Snapshot,
    request: ScanRequest,
    order: indices.RowOrder,
    columns: Sequence[predicate.Column],
    sort_bytes: int,
) -> Iterator[pa.Table]:
    whole = scan_whole(snapshot, without_limit(request))
    rows = limit_held_bytes(snapshot, whole, snapshot.fragments, FREE_SORTED_BYTES)
    batches = (
        _keyed(batch, columns, order, batch.schema.names) for table in rows for batch in _plain(table).to_batches()
    )
    schema = empty_answer(request).schema
    with indices.sort_rows(batches, sort_bytes, order) as ordered:
        tables = (_restored(batch, len(columns), schema) for batch in ordered)
        yield from limit_rows(tables, request.offset, request.limit)


def _column(schema: Schema, path: str) -> predicate.Column:
    lineage = schema.lineage(path)
    return predicate.Column(tuple(field.name for field in lineage), lineage[-1].arrow_type)


def _keyed(
    batch: pa.RecordBatch, columns: Sequence[predicate.Column], order: indices.RowOrder, names: Sequence[str]
) -> pa.RecordBatch:
    """Return the sort columns and then the named columns; nested sort columns become bytes of the same order."""
    keys = [
        _key(column.evaluate(batch), direction) for column, direction in zip(columns, order.directions, strict=True)
    ]
    values = [_without_offset(batch.column(name)) for name in names]
    fields = [pa.field(f"key {number}", key.type) for number, key in enumerate(keys)]
    fields += [pa.field(name, value.type) for name, value in zip(names, values, strict=True)]
    return pa.record_batch([*keys, *values], schema=pa.schema(fields))


def _key(values: pa.Array, direction: indices.Direction) -> pa.Array:
    if not indices.is_nested_sortable(values.type):
        return values
    return indices.nested_keys(values, ascending=direction.ascending, nulls_first=direction.nulls_first)


def _without_offset(array: pa.Array) -> pa.Array:
    return copy_array(array) if array.offset else array


def _plain(table: pa.Table) -> pa.Table:
    """Replace dictionary columns by their values: one file cannot hold batches with different dictionaries."""
    for position, field in enumerate(table.schema):
        if pt.is_dictionary(field.type):
            table = table.set_column(position, field.name, table.column(position).cast(field.type.value_type))
    return table


def _restored(batch: pa.RecordBatch, num_keys: int, schema: pa.Schema) -> pa.Table:
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns[num_keys:], schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
