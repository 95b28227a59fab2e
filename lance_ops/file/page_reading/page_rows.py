"""Split the wanted rows of a file among the pages that hold them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_ops.core.records import dataclass
from lance_ops.file.page_reading.rows import RowSelection, RowSet, RowSlice

__all__ = ["PageRows", "cut_rows", "shared_boundaries", "split_rows"]


@dataclass(frozen=True, slots=True)
class PageRows:
    """The wanted rows of one page, counted from the page's first row; `page` is the page's index in its column."""

    page: int
    rows: RowSelection


def split_rows(rows: RowSelection, page_starts: Sequence[int]) -> list[PageRows]:
    """Split a file's rows among pages; `page_starts` has each page's first row, and the end of the last page."""
    if not rows.count:
        return []
    if len(page_starts) == 2 and page_starts[0] == 0:
        return [PageRows(0, rows)]
    bounds = np.asarray(page_starts, dtype=np.int64)
    first = int(np.searchsorted(bounds, rows.first, side="right")) - 1
    last = int(np.searchsorted(bounds, rows.last, side="right")) - 1
    if isinstance(rows, RowSlice):
        pages = range(first, last + 1)
        cut = [(p, max(rows.start, page_starts[p]), min(rows.stop, page_starts[p + 1])) for p in pages]
        return [PageRows(p, RowSlice(a - page_starts[p], b - page_starts[p])) for p, a, b in cut if a < b]
    indices = rows.indices
    cuts = np.searchsorted(indices, bounds[first : last + 2])
    return [
        PageRows(first + i, RowSet(indices[a:b] - page_starts[first + i]))
        for i, (a, b) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
        if a < b
    ]


def shared_boundaries(page_starts: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return the rows at which a page starts (or the last page ends) in every one of several columns."""
    first, *others = page_starts
    return sorted(set(first).intersection(*others)) if others else tuple(dict.fromkeys(first))


def cut_rows(rows: RowSelection, boundaries: Sequence[int]) -> list[RowSelection]:
    """Cut a file's rows at boundaries; parts without rows are left out."""
    parts = split_rows(rows, boundaries)
    return [_shift(part.rows, boundaries[part.page]) for part in parts]


def _shift(rows: RowSelection, distance: int) -> RowSelection:
    if not distance:
        return rows
    if isinstance(rows, RowSlice):
        return RowSlice(rows.start + distance, rows.stop + distance)
    return RowSet(rows.indices + distance)
