"""Sort rows by their first columns, and compare sorted rows.

Values compare by `sort_keys`. Each column ascends or descends, and its nulls come before or after all values whichever
way it sorts. Equal rows keep the order in which they came.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import total_ordering
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import rows_at, rows_where
from lance_ops.core.records import dataclass
from lance_ops.indices.sort_keys import Key, Side, merged_row_order, sort_indices, sort_keys

__all__ = ["FIRST_COLUMN", "Direction", "RowKeys", "RowOrder", "SortKey"]

SortKey: TypeAlias = tuple[tuple[int, "Key | _Descending | None"], ...]
"""A row's key: for each column the rank of null or value (-1, 0 or 1), and the value."""


@dataclass(frozen=True)
class Direction:
    """The direction in which one column sorts, and the position of its nulls."""

    ascending: bool = True
    nulls_first: bool = False


class RowKeys:
    """The sort keys of a sorted batch's rows, computed when they are asked for."""

    def __init__(self, columns: Sequence[pa.Array], directions: Sequence[Direction]) -> None:
        self._columns = columns
        self._directions = directions

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, row: int) -> SortKey:
        pairs = zip(self._columns, self._directions, strict=True)
        return tuple(_column_key(column[row].as_py(), direction) for column, direction in pairs)

    def rank(self, key: SortKey, side: Side, start: int = 0) -> int:
        """Return how many rows come before `key`; rows equal to it count for side "right" only.

        The caller knows that the first `start` rows do.
        """
        return (bisect_left if side == "left" else bisect_right)(self, key, lo=start)


@dataclass(frozen=True)
class RowOrder:
    """An order of rows by their first columns, one direction for each; the first column counts most."""

    directions: tuple[Direction, ...]

    def sort(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows in this order."""
        return rows_at(batch, self.indices(batch))

    def merge(self, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Return the rows of parts, each of which is in this order; equal rows keep the order of the parts.

        There is at least one part. A part that has all the rows is returned as it is.
        """
        first, *others = [part for part in parts if part.num_rows] or parts[:1]
        if not others:
            return first
        rows = pa.concat_batches([first, *others])
        if self.directions == FIRST_COLUMN.directions:
            return rows_at(rows, merged_row_order(sort_keys(rows.column(0))))
        return self.sort(rows)

    def without_later(self, batch: pa.RecordBatch, bound: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows without those whose first column puts them after the last row of `bound`."""
        keys, direction = sort_keys(batch.column(0)), self.directions[0]
        last = sort_keys(bound.column(0).slice(bound.num_rows - 1))[0]
        if last.is_valid:
            compare = pc.less_equal if direction.ascending else pc.greater_equal
            return rows_where(batch, compare(keys, last).fill_null(direction.nulls_first))
        return rows_where(batch, pc.is_null(keys)) if direction.nulls_first else batch

    def keys(self, batch: pa.RecordBatch) -> RowKeys:
        """Return the keys of a batch that is sorted in this order."""
        return RowKeys([sort_keys(batch.column(position)) for position in range(len(self.directions))], self.directions)

    def indices(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the indices that sort the rows, stably."""
        keys = [sort_keys(batch.column(position)) for position in range(len(self.directions))]
        if self.directions == FIRST_COLUMN.directions:
            return sort_indices(keys[0])
        columns: list[pa.Array] = []
        orders: list[tuple[str, str]] = []
        for key, direction in zip(keys, self.directions, strict=True):
            if (
                key.null_count
            ):  # nulls get a column of their own: not every pyarrow can place the nulls of each key separately
                columns.append(pc.is_null(key).cast(pa.uint8()))
                orders.append((str(len(orders)), "descending" if direction.nulls_first else "ascending"))
            columns.append(key)
            orders.append((str(len(orders)), "ascending" if direction.ascending else "descending"))
        if len(columns) == 1:
            return pc.array_sort_indices(columns[0], order=orders[0][1])
        return pc.sort_indices(pa.Table.from_arrays(columns, [name for name, _ in orders]), sort_keys=orders)


FIRST_COLUMN = RowOrder((Direction(nulls_first=True),))
"""The order of an index's rows: ascending by the first column, nulls first."""


@total_ordering
@dataclass(frozen=True)
class _Descending:
    """A value in descending order: it compares as less than the values that it is greater than."""

    value: Key

    def __lt__(self, other: _Descending) -> bool:
        return bool(self.value > other.value)


def _column_key(value: Key | None, direction: Direction) -> tuple[int, Key | _Descending | None]:
    if value is None:
        return -1 if direction.nulls_first else 1, None
    return 0, value if direction.ascending else _Descending(value)
