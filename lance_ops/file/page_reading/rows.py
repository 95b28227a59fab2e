"""The rows that a read asks for: a slice of consecutive rows, or a set of scattered ones."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.records import dataclass

__all__ = ["RowSelection", "RowSet", "RowSlice", "rows_of_runs"]


@dataclass(frozen=True, slots=True)
class RowSlice:
    """Consecutive rows: those in `[start, stop)`."""

    start: int
    stop: int

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    @property
    def first(self) -> int:
        """The first row; the slice must not be empty."""
        return self.start

    @property
    def last(self) -> int:
        """The last row; the slice must not be empty."""
        return self.stop - 1

    @property
    def indices(self) -> Int64Array:
        """Every row, ascending."""
        return np.arange(self.start, self.stop, dtype=np.int64)

    def scaled(self, factor: int) -> RowSlice:
        """Return the elements of these rows when every row has `factor` of them."""
        return self if factor == 1 else RowSlice(self.start * factor, self.stop * factor)


@dataclass(frozen=True, slots=True, eq=False)
class RowSet:
    """Scattered runs of `run` rows each; `starts` ascend and runs do not overlap."""

    starts: Int64Array
    run: int = 1

    @property
    def indices(self) -> Int64Array:
        """Every row, ascending."""
        if self.run == 1:
            return self.starts
        every: Int64Array = (self.starts[:, None] + np.arange(self.run, dtype=np.int64)).reshape(-1)
        return every

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.starts) * self.run

    @property
    def first(self) -> int:
        """The first row; the set must not be empty."""
        return int(self.starts[0])

    @property
    def last(self) -> int:
        """The last row; the set must not be empty."""
        return int(self.starts[-1]) + self.run - 1

    def scaled(self, factor: int) -> RowSet:
        """Return the elements of these rows when every row has `factor` of them."""
        return self if factor == 1 else RowSet(self.starts * factor, self.run * factor)


RowSelection: TypeAlias = RowSlice | RowSet


def rows_of_runs(starts: Int64Array, lengths: Int64Array) -> RowSelection:
    """Return the rows of runs that ascend and do not overlap; empty runs are left out."""
    starts, lengths = starts[lengths > 0], lengths[lengths > 0]
    if not len(starts):
        return RowSlice(0, 0)
    if (starts[1:] == starts[:-1] + lengths[:-1]).all():
        return RowSlice(int(starts[0]), int(starts[-1] + lengths[-1]))
    ends = np.cumsum(lengths)
    return RowSet(np.repeat(starts - (ends - lengths), lengths) + np.arange(int(ends[-1]), dtype=np.int64))
