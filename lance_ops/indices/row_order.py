"""Sort rows by their first columns, and compare sorted rows.

Values compare by `sort_keys`. Each column ascends or descends, and its nulls come before or after all values whichever
way it sorts. Equal rows keep the order in which they came.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import total_ordering
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import array_of_numbers, numbers_of, rows_at, rows_where, truths_of
from lance_ops.core.ndarrays import BoolArray
from lance_ops.core.records import dataclass
from lance_ops.indices.sort_keys import Key, Side, merged_row_order, sort_indices, sort_keys
from lance_ops.indices.word_order import has_equal_neighbour, order_words

__all__ = ["FIRST_COLUMN", "Direction", "RowKeys", "RowOrder", "SortKey"]

SortKey: TypeAlias = tuple[tuple[int, "Key | _Descending | None"], ...]
"""A row's key: for each column the rank of null or value (-1, 0 or 1), and the value."""

_Indices: TypeAlias = npt.NDArray[np.integer[Any]]


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
        if batch.num_rows < 2:
            return array_of_numbers(np.arange(batch.num_rows))
        keys = [sort_keys(batch.column(position)) for position in range(len(self.directions))]
        return array_of_numbers(_order_rows(keys, self.directions))


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


def _order_rows(keys: Sequence[pa.Array], directions: Sequence[Direction]) -> _Indices:
    """Return the indices that sort rows, at least two, by their keys, stably; the first key counts most.

    Only rows with a repeated first key are sorted by the other keys, and then, stably, by the rank of their first key.
    """
    first, *others = keys
    order = _order_column(first, directions[0])
    if not others:
        return order
    equals_next = _equals_next(first.take(array_of_numbers(order)))
    is_tied = has_equal_neighbour(equals_next)
    rows = order[is_tied]
    if len(rows):
        ranks = np.insert(~equals_next, 0, False).cumsum(dtype=np.uint64)[is_tied]
        within = _order_rows([key.take(array_of_numbers(rows)) for key in others], directions[1:])
        order = np.array(order)
        order[is_tied] = rows[within[order_words(ranks[within])]]
    return order


def _order_column(keys: pa.Array, direction: Direction) -> _Indices:
    """Return the indices that sort keys, stably.

    A descending order is the reverse of the ascending order of the reversed keys: so equal keys are reversed twice.
    `sort_indices` puts nulls first, and the reversal puts them last; a rotation moves them to the other end.
    """
    if direction.ascending:
        order = numbers_of(sort_indices(keys))
    else:
        order = len(keys) - 1 - numbers_of(sort_indices(keys[::-1]))[::-1]
    if direction.nulls_first == direction.ascending:
        return order
    return np.roll(order, -keys.null_count if direction.ascending else keys.null_count)


def _equals_next(keys: pa.Array) -> BoolArray:
    """Return whether each key but the last equals the next one; nulls equal nulls."""
    keys, after = keys[:-1], keys[1:]
    return truths_of(pc.equal(keys, after)) | truths_of(pc.and_(pc.is_null(keys), pc.is_null(after)))
