"""Rows that a scan read from one fragment, with their physical offsets in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_ops.core.addresses import row_addrs
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.reading.row_columns import row_column, row_field
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import bitmap_of

__all__ = ["RowOffsets", "ScannedRows", "offset_array", "with_row_columns"]

RowOffsets: TypeAlias = Uint64Array | range
"""Physical offsets of rows in their fragment, or in several fragments that are laid end to end.

Consecutive offsets are a range, which costs nothing to make.
"""


@dataclass(frozen=True, eq=False)
class ScannedRows:
    """Rows of one fragment in ascending order. `offsets` has their number: a table without columns does not."""

    fragment: Fragment
    offsets: RowOffsets
    table: pa.Table

    def __len__(self) -> int:
        return len(self.offsets)

    def slice(self, start: int, length: int) -> ScannedRows:
        """Return `length` of the rows, from position `start` on."""
        return replace(self, offsets=self.offsets[start : start + length], table=self.table.slice(start, length))

    def addresses(self, positions: Int64Array) -> Uint64Array:
        """Return the addresses of the rows at these positions in the table."""
        if isinstance(self.offsets, range):
            return row_addrs(self.fragment.id, positions + self.offsets.start)
        return row_addrs(self.fragment.id, self.offsets[positions])

    def bitmap(self) -> BitMap:
        """Return the offsets as a bitmap."""
        return BitMap(self.offsets) if isinstance(self.offsets, range) else bitmap_of(self.offsets)


def offset_array(offsets: RowOffsets) -> Uint64Array:
    """Return the offsets as an array, also if they are a range."""
    return np.arange(offsets.start, offsets.stop, dtype=np.uint64) if isinstance(offsets, range) else offsets


def with_row_columns(
    snapshot: Snapshot,
    table: pa.Table,
    fragment: Fragment,
    offsets: RowOffsets,
    names: Sequence[str],
    *,
    null_if_deleted: bool = False,
) -> pa.Table:
    """Append row columns to the rows at these physical offsets; see `row_column`."""
    if not names:
        return table
    array = offset_array(offsets)
    columns = [row_column(snapshot, name, fragment, array, null_if_deleted=null_if_deleted) for name in names]
    schema = pa.schema([*table.schema, *map(row_field, names)], table.schema.metadata)
    return pa.Table.from_arrays([*table.columns, *columns], schema=schema)
