"""The first and last key of each page of a B-tree index, and the search for a key's page among them.

All rows of an index are one sorted sequence. A `Cut` is a position between two of its rows, given by a key; a query
matches the rows between two cuts. The lookup knows the row number of a cut between two pages. For any other cut it
names the page that must be read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import numbers_of
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.indices.btree.layout import BATCH_SIZE, MAX, MIN, NULL_COUNT, PAGE_IDX, RANGE_PARTITIONED
from lance_ops.indices.sort_keys import Key, Side, ranks_in, sort_keys

__all__ = ["AFTER_NULLS", "BEFORE_NULLS", "END", "Cut", "PageLookup", "SortPosition"]

_PAGE_ROWS_BEFORE_METADATA = "4096"


@dataclass(frozen=True, slots=True)
class Cut:
    """The position before all rows of a key (`left`) or after them (`right`)."""

    key: Key | None
    side: Side


BEFORE_NULLS = Cut(None, "left")
AFTER_NULLS = Cut(None, "right")
END = None
"""The position after the last row."""


@dataclass(frozen=True, slots=True)
class SortPosition:
    """The row that follows a cut. If `page` is given, the cut is inside that page and `row` is the page's first row."""

    row: int
    page: int | None = None


@dataclass(frozen=True)
class PageLookup:
    """The first and last key of each page, and the number of nulls in the index.

    `maxs` has no nulls: it begins with the first page that holds a value.
    """

    mins: tuple[Key | None, ...]
    maxs: tuple[Key, ...]
    num_nulls: int
    page_rows: int

    @classmethod
    def from_table(cls, table: pa.Table, where: str) -> PageLookup:
        """Build the lookup from the rows of page_lookup; `where` names the file in errors.

        Raises `UnsupportedFeature` for pages that are spread over several files, `CorruptFile` for pages out of order.
        """
        metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
        if metadata.get(RANGE_PARTITIONED, "false") != "false":
            raise UnsupportedFeature("a B-tree index with range-partitioned pages", where)
        page_rows = metadata.get(BATCH_SIZE, _PAGE_ROWS_BEFORE_METADATA)
        if not page_rows.isdecimal() or int(page_rows) == 0:
            raise CorruptFile(where, f"metadata {BATCH_SIZE}", f"{page_rows!r} is not a number of rows")
        for name in (NULL_COUNT, PAGE_IDX):
            if table.column(name).null_count:
                raise CorruptFile(where, name, "a page has none")
        if (numbers_of(table.column(PAGE_IDX)) != np.arange(table.num_rows)).any():
            raise CorruptFile(where, PAGE_IDX, "pages are not numbered in order")
        mins, maxs = (sort_keys(table.column(name).combine_chunks()) for name in (MIN, MAX))
        values = maxs.slice(maxs.null_count)
        lookup = cls(
            tuple(mins.to_pylist()),
            tuple(values.to_pylist()),
            int(numbers_of(table.column(NULL_COUNT)).sum()),
            int(page_rows),
        )
        if values.null_count or any(first > second for first, second in pairwise(lookup.maxs)):
            raise CorruptFile(where, MAX, "pages are not in order")
        return lookup

    @property
    def num_pages(self) -> int:
        """How many pages there are."""
        return len(self.mins)

    def max_of(self, page: int) -> Key | None:
        """Return a page's last key, None if it holds nulls only."""
        ordinal = page - self._first_value_page
        return self.maxs[ordinal] if ordinal >= 0 else None

    def position(self, cut: Cut | None) -> SortPosition:
        """Return the position of a cut."""
        if cut is None:
            return SortPosition(self.num_pages * self.page_rows)
        if cut.key is None:
            return SortPosition(self.num_nulls if cut == AFTER_NULLS else 0)
        bisect = bisect_left if cut.side == "left" else bisect_right
        page = self._first_value_page + bisect(self.maxs, cut.key)
        row = page * self.page_rows
        if page == self.num_pages:
            return SortPosition(row)
        first = self.mins[page]
        before_page = first is not None and (cut.key <= first if cut.side == "left" else cut.key < first)
        return SortPosition(row) if before_page else SortPosition(row, page)

    def rows_in(self, page: int, keys: pa.Array, cuts: Iterable[Cut], where: str) -> Iterator[tuple[Cut, int]]:
        """Yield each cut with the row that follows it. The cuts are inside one page, and `keys` are that page's keys.

        Raises `CorruptFile` if the keys are not those that the lookup states for the page.
        """
        if not len(keys) or keys[0].as_py() != self.mins[page] or keys[-1].as_py() != self.max_of(page):
            raise CorruptFile(where, f"page {page}", "not the values that page_lookup states: build the index again")
        first = page * self.page_rows
        by_side: dict[Side, list[Cut]] = {"left": [], "right": []}
        for cut in cuts:
            by_side[cut.side].append(cut)
        for side, same_side in by_side.items():
            ranks = ranks_in(keys, [cut.key for cut in same_side], side)
            yield from ((cut, first + rank) for cut, rank in zip(same_side, ranks, strict=True))

    @cached_property
    def _first_value_page(self) -> int:
        return len(self.mins) - len(self.maxs)
