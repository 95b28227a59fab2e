"""Rows that were read from one fragment, and where they stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_ops.core.addresses import row_addrs
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.reading.row_columns import row_column, row_field
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import bitmap_of

__all__ = ["Offsets", "ScannedRows", "offset_array", "with_row_columns"]

Offsets: TypeAlias = Uint64Array | range
"""Physical offsets of rows in their fragment; a range, where they follow each other, costs nothing to make."""


@dataclass(frozen=True, eq=False)
class ScannedRows:
    """Rows of one fragment, in ascending order; a table without columns does not say how many, `offsets` do."""

    fragment: Fragment
    offsets: Offsets
    table: pa.Table

    def __len__(self) -> int:
        return len(self.offsets)

    def slice(self, start: int, length: int) -> ScannedRows:
        """Return some of the rows."""
        return replace(self, offsets=self.offsets[start : start + length], table=self.table.slice(start, length))

    def addresses(self, places: Int64Array) -> Uint64Array:
        """Return the addresses of the rows at these places among them."""
        if isinstance(self.offsets, range):
            return row_addrs(self.fragment.id, places + self.offsets.start)
        return row_addrs(self.fragment.id, self.offsets[places])

    def bitmap(self) -> BitMap:
        """Return the offsets as a bitmap."""
        return BitMap(self.offsets) if isinstance(self.offsets, range) else bitmap_of(self.offsets)


def offset_array(offsets: Offsets) -> Uint64Array:
    """Return the offsets one by one."""
    return np.arange(offsets.start, offsets.stop, dtype=np.uint64) if isinstance(offsets, range) else offsets


def with_row_columns(
    snapshot: Snapshot,
    table: pa.Table,
    fragment: Fragment,
    offsets: Offsets,
    names: Sequence[str],
    *,
    null_if_deleted: bool = False,
) -> pa.Table:
    """Append row columns to rows at these physical offsets; with `null_if_deleted` a deleted row has no id."""
    if not names:
        return table
    every = offset_array(offsets)
    columns = [row_column(snapshot, name, fragment, every, null_if_deleted=null_if_deleted) for name in names]
    schema = pa.schema([*table.schema, *map(row_field, names)], table.schema.metadata)
    return pa.Table.from_arrays([*table.columns, *columns], schema=schema)
