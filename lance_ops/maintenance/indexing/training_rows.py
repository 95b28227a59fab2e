"""Read the values that an index is trained on, with the addresses or ids of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.schema import Field, Schema
from lance_ops.indices import INDEX_ROW, INDEX_VALUE, RowKey
from lance_ops.reading import ScanRequest, in_task, scan_whole
from lance_ops.snapshot import FREE_SORTED_BYTES, FREE_SORTED_ROWS, Snapshot, check_rows_are_stored, limit_held_bytes

__all__ = ["RowRange", "indexed_values", "training_rows", "training_rows_in_task"]

RowRange = tuple[int, int, int]
"""A fragment's id, and its first physical row and the one after its last."""


def training_rows(
    snapshot: Snapshot, field: Field, fragment_ids: tuple[int, ...] | None, row_key: RowKey = RowKey.ADDRESS
) -> Iterator[pa.RecordBatch]:
    """Yield the column's live values with the rows' addresses or ids; None means all fragments.

    Raises `ReadTooLarge` if the files are too small for so many rows.
    """
    return _read(snapshot, field, ScanRequest(Schema(()), fragment_ids=fragment_ids), row_key)


def training_rows_in_task(
    snapshot: Snapshot, field: Field, row_ranges: tuple[RowRange, ...], row_key: RowKey
) -> Iterator[pa.RecordBatch]:
    """Yield what `training_rows` does for some rows of each fragment, and read few blocks ahead."""
    fragment_ids = tuple(fragment_id for fragment_id, _, _ in row_ranges)
    request = ScanRequest(Schema(()), fragment_ids=fragment_ids, row_ranges=row_ranges)
    return _read(snapshot, field, in_task(snapshot, request), row_key)


def indexed_values(column: pa.ChunkedArray, schema: Schema, field: Field) -> pa.ChunkedArray:
    """Return a field's values out of the structs around it; a value is null if one of the structs is."""
    node = schema.fields[0]
    while node.id != field.id:
        node = node.children[0]
        column = pa.chunked_array([pc.struct_field(chunk, node.name) for chunk in column.chunks], node.arrow_type)
    return column


def _read(snapshot: Snapshot, field: Field, request: ScanRequest, row_key: RowKey) -> Iterator[pa.RecordBatch]:
    wanted_ids = snapshot.fragments_by_id if request.fragment_ids is None else request.fragment_ids
    fragments = [snapshot.fragments_by_id[each] for each in wanted_ids]
    check_rows_are_stored(snapshot, sum(each.physical_rows for each in fragments), fragments, FREE_SORTED_ROWS)
    schema = snapshot.schema.project([snapshot.schema.path_of(field.id)])
    by_id = row_key is RowKey.STABLE_ID
    asked = replace(request, schema=schema, with_row_id=by_id, with_row_address=not by_id)
    wanted = pa.schema([pa.field(INDEX_VALUE, field.arrow_type), pa.field(INDEX_ROW, pa.uint64())])
    found = scan_whole(snapshot.verifying(), asked)
    for table in limit_held_bytes(snapshot, found, fragments, FREE_SORTED_BYTES):
        values = indexed_values(table.column(0), schema, field)
        yield from pa.Table.from_arrays([values, table.columns[-1]], schema=wanted).to_batches()
