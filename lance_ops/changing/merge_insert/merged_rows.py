"""Write the updated and inserted rows of a merge as new fragments.

Updated rows come before inserted ones, and keep their ids in a table of stable row ids. Columns and struct fields that
the source lacks keep their values in updated rows, and are null in inserted ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lance_ops.blobs import take_to_rewrite
from lance_ops.changing.merge_insert.matching import Matches
from lance_ops.changing.merge_insert.merge_request import BoundMerge
from lance_ops.changing.merge_insert.missing_struct_fields import with_missing_fields_kept
from lance_ops.core.arrow import numbers_of, rows_at
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_ADDRESS, ROW_ID, ScanRequest
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.writing import UpdatedRowWriter, WriteTargets, choose_file_version

__all__ = ["with_missing_values_kept", "write_merged_rows"]

_ROWS_AT_ONCE = 1 << 16
_BLOBS_AT_ONCE = 256


def write_merged_rows(
    snapshot: Snapshot, merge: BoundMerge, matches: Matches, inserted: Int64Array, targets: WriteTargets
) -> tuple[Fragment, ...]:
    """Write updated rows in the order of their addresses, and then the `inserted` source rows.

    The files are not durable yet; on an error they are deleted.
    """
    order = np.argsort(matches.updated)
    given = merge.source.schema.names
    missing = [name for name in snapshot.schema.names if name not in given or name in merge.partial_structs]
    with UpdatedRowWriter(snapshot, choose_file_version(snapshot, merge.request.file_version), targets) as writer:
        complete = inserted
        if missing or writer.keeps_ids:
            for rows, row_ids in _updated_rows(snapshot, merge, matches, order, missing):
                writer.write_updated(rows, row_ids)
        else:  # the source has every value of an updated row, so the table is not read
            complete = np.concatenate((matches.source_rows[order], inserted))
        for start in range(0, len(complete), _ROWS_AT_ONCE):
            writer.write_new(rows_at(merge.source, complete[start : start + _ROWS_AT_ONCE]))
        return writer.finish()


def with_missing_values_kept(rows: pa.Table, old: pa.Table, partial_structs: Mapping[str, pa.DataType]) -> pa.Table:
    """Return source rows with the values that only the table has: columns of `old`, and fields of partial structs."""
    for position, field in enumerate(old.schema):
        if field.name not in partial_structs:
            rows = rows.append_column(field, old.column(position))
            continue
        at = rows.schema.get_field_index(field.name)
        new, kept = rows.column(at).combine_chunks(), old.column(position).combine_chunks()
        filled = with_missing_fields_kept(new, kept, partial_structs[field.name])
        rows = rows.set_column(at, rows.schema.field(at), filled)
    return rows


def _updated_rows(
    snapshot: Snapshot, merge: BoundMerge, matches: Matches, order: Int64Array, missing: Sequence[str]
) -> Iterator[tuple[pa.Table, Uint64Array]]:
    """Yield updated rows in `order`, with the table's values of the `missing` columns, and their row ids."""
    request = ScanRequest(
        snapshot.schema.project(missing) if missing else Schema(()), with_row_id=True, with_row_address=True
    )
    step = _BLOBS_AT_ONCE if request.schema.holds_blobs_v2 else _ROWS_AT_ONCE
    for start in range(0, len(order), step):
        chosen = order[start : start + step]
        old = take_to_rewrite(snapshot.verifying(), matches.updated[chosen], request)
        row_ids = numbers_of(old.column(ROW_ID))
        old = old.drop_columns([ROW_ID, ROW_ADDRESS])
        new = rows_at(merge.source, matches.source_rows[chosen])
        yield with_missing_values_kept(new, old, merge.partial_structs), row_ids
