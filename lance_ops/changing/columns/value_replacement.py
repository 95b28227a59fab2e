"""Replace values of some columns in some rows, looked up by key (a column, or the row's id or address).

Each fragment with such a row gets a new file of these columns, and the fields of the old values are tombstoned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_ops.changing.columns.backfill import BackfillTask, plan_backfill
from lance_ops.changing.columns.column_file import ColumnFile, fragments_with_column_files
from lance_ops.changing.columns.column_sources import ColumnSource
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.arrow import rows_at
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_ADDRESS, ROW_COLUMNS, ROW_ID, VERSION_COLUMNS, ScanRequest, offset_array, scan_rows
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import bitmap_of
from lance_ops.writing import conform_present_columns

__all__ = [
    "ReplacedValues",
    "bind_replaced_values",
    "fragments_with_replaced_values",
    "offsets_of_replaced_values",
    "plan_value_replacement",
]


@dataclass(frozen=True)
class ReplacedValues(ColumnSource):
    """The columns of `table` for rows whose value of `on` is among the keys; other rows keep their values."""

    on: str
    keys: SourceKeys = field(compare=False)
    table: pa.Table = field(compare=False)

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.on, *self.table.schema.names)

    def compute(self, rows: pa.Table, schema: Schema, rows_name: str) -> pa.Table:
        positions, codes = self.keys.hits([rows.column(self.on).combine_chunks()])
        source_rows = np.arange(len(rows))
        source_rows[positions] = len(rows) + self.keys.last_row_of(codes)
        both = pa.concat_tables([rows.select(self.table.schema.names), self.table.cast(self._stored(rows))])
        return rows_at(both, source_rows)

    def _stored(self, rows: pa.Table) -> pa.Schema:
        return rows.select(self.table.schema.names).schema


def bind_replaced_values(snapshot: Snapshot, table: pa.Table, left_on: str, right_on: str) -> ReplacedValues:
    """Return the columns of `table`, except its key, as new values of the dataset's columns of the same names.

    Raises `InvalidInput` if the key does not exist or is the only column, and `SchemaMismatch` for a column that the
    dataset does not have or that has another type.
    """
    if right_on not in table.schema.names:
        raise InvalidInput(f"the data has no column {right_on!r} to match by; it has {', '.join(table.schema.names)}")
    schema = snapshot.schema.to_arrow_storage()
    key_type = pa.uint64() if left_on in ROW_COLUMNS else snapshot.schema.field(left_on).arrow_type
    values = conform_present_columns(table.drop_columns([right_on]), schema)
    if not values.num_columns:
        raise InvalidInput(f"the data has no column beside {right_on!r}")
    try:
        keys = table.column(right_on).combine_chunks().cast(key_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(f"columns {left_on!r} and {right_on!r} do not compare: {error}") from error
    return ReplacedValues(left_on, SourceKeys([keys], [right_on]), values)


def plan_value_replacement(
    snapshot: Snapshot, replaced: ReplacedValues, fragment_ids: Sequence[int]
) -> tuple[BackfillTask, ...]:
    """Return the tasks that write the columns for these fragments."""
    columns = Schema(tuple(node for node in snapshot.schema.fields if node.name in replaced.table.schema.names))
    ordered = ReplacedValues(replaced.on, replaced.keys, replaced.table.select(columns.names))
    return plan_backfill(snapshot, columns, ordered, fragment_ids=fragment_ids)


def fragments_with_replaced_values(
    snapshot: Snapshot, replaced: ReplacedValues, files: Sequence[ColumnFile]
) -> tuple[tuple[Fragment, ...], tuple[int, ...]]:
    """Return the fragments that have new files, and the ids of the columns in these files and of all fields in them."""
    names = replaced.table.schema.names
    fields = {node.id for part in snapshot.schema.fields if part.name in names for node in part.walk()}
    changed = {file.fragment_id for file in files}
    fragments = fragments_with_column_files(snapshot, snapshot.schema, files, replaced=fields)
    return tuple(part for part in fragments if part.id in changed), tuple(sorted(fields))


def offsets_of_replaced_values(snapshot: Snapshot, replaced: ReplacedValues, fragment_id: int) -> BitMap:
    """Return the physical offsets of a fragment's rows that get new values."""
    names = () if replaced.on in ROW_COLUMNS else (replaced.on,)
    request = ScanRequest(
        snapshot.schema.project(names),
        with_row_id=replaced.on == ROW_ID,
        with_row_address=replaced.on == ROW_ADDRESS,
        version_columns=tuple(name for name in VERSION_COLUMNS if name == replaced.on),
        fragment_ids=(fragment_id,),
    )
    found = BitMap()
    for rows in scan_rows(snapshot.verifying(), request):
        positions, _ = replaced.keys.hits([rows.table.column(replaced.on).combine_chunks()])
        found.update(bitmap_of(offset_array(rows.offsets)[positions]))
    return found
