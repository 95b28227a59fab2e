"""Which rows of a page are wanted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["RowSet", "RowSlice", "Rows"]


@dataclass(frozen=True, slots=True)
class RowSlice:
    """Consecutive rows."""

    start: int
    stop: int

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    @property
    def first(self) -> int:
        """The first row; there is one."""
        return self.start

    @property
    def last(self) -> int:
        """The last row; there is one."""
        return self.stop - 1

    def scaled(self, factor: int) -> RowSlice:
        """Return the elements of these rows when every row has `factor` of them."""
        return RowSlice(self.start * factor, self.stop * factor)


@dataclass(frozen=True, slots=True, eq=False)
class RowSet:
    """Scattered rows, ascending, each once."""

    indices: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.indices)

    @property
    def first(self) -> int:
        """The first row; there is one."""
        return int(self.indices[0])

    @property
    def last(self) -> int:
        """The last row; there is one."""
        return int(self.indices[-1])

    def scaled(self, factor: int) -> RowSet:
        """Return the elements of these rows when every row has `factor` of them."""
        if factor == 1:
            return self
        return RowSet((self.indices[:, None] * factor + np.arange(factor, dtype=np.int64)).reshape(-1))


Rows = RowSlice | RowSet
