"""Read mini-block pages of several files as one page: their lengths and places come as arrays, not as objects."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from lance_ops.core.ndarrays import Int64Array, UnsignedArray
from lance_ops.core.records import dataclass
from lance_ops.encodings import Encoding, check, gather_ranges
from lance_ops.file.leaves import Leaf
from lance_ops.file.page_reading import Ranges, RowSelection, RowSlice, SourceBytes, Steps
from lance_ops.file.v2_1.layouts.chunk_index import ChunkIndex
from lance_ops.file.v2_1.layouts.chunk_reading import read_chunks
from lance_ops.file.v2_1.layouts.contract import LeafRows, PageContext
from lance_ops.file.v2_1.layouts.mini_block_description import MiniBlockDescription

__all__ = ["JoinedPages"]


@dataclass(frozen=True, eq=False)
class JoinedPages:
    """Consecutive mini-block pages of one leaf, whose formats have equal read keys: no lists, and no dictionaries.

    Page `i` has `lengths[i]` elements. Its chunk words begin at `starts[0][i]` and take `sizes[0][i]` bytes, its chunks
    those of `starts[1]` and `sizes[1]`. The caller has checked that they lie in their file.
    """

    leaf: Leaf
    descriptions: Sequence[MiniBlockDescription]
    lengths: Int64Array
    starts: tuple[Int64Array, Int64Array]
    sizes: tuple[Int64Array, Int64Array]

    @staticmethod
    def takes(description: MiniBlockDescription) -> bool:
        """Return whether pages with this description can be joined."""
        return description.dictionary is None and description.format.rep is None

    @property
    def _are_described_alike(self) -> bool:
        return self.descriptions.count(self.descriptions[0]) == len(self.descriptions)

    def read(self, rows: RowSelection) -> Steps[LeafRows]:
        """Read rows, counted from the first page on: at least one."""
        elements = rows.scaled(self.leaf.elements_per_row)
        num_elements = int(self.lengths.sum())
        whole = isinstance(elements, RowSlice) and elements.count == num_elements
        wanted = Ranges(self.starts[0], self.starts[0] + self.sizes[0])
        if whole:
            wanted = Ranges.concat([wanted, Ranges(self.starts[1], self.starts[1] + self.sizes[1])])
        fetched = yield wanted
        head = self.descriptions[0].format
        index = self._decode_index(fetched, 4 if head.large else 2)
        ends = self._ends_by_encoding()
        entries, values = yield from read_chunks(head, elements, index, fetched, ends, whole=whole)
        context = PageContext(self.leaf, num_elements, (), 0)
        return context.finish(rows.count, head.scheme, entries, context.to_array(values))

    def _decode_index(self, fetched: SourceBytes, width: int) -> ChunkIndex:
        if self._are_described_alike:
            num_items = np.full(len(self.lengths), self.descriptions[0].num_items, np.int64)
        else:
            num_items = np.array([described.num_items for described in self.descriptions], np.int64)
        check((num_items == self.lengths).all(), "another number of values than of rows in a page")
        return ChunkIndex.decode_joined(
            self._words(fetched, width), self.sizes[0] // width, num_items, self.starts[1], self.sizes[1]
        )

    def _words(self, fetched: SourceBytes, width: int) -> UnsignedArray:
        """Return the chunk words of all pages, end to end."""
        starts, sizes = self.starts[0], self.sizes[0]
        check((sizes % width == 0).all(), f"chunk words that are not {width} bytes wide")
        return gather_ranges(fetched.data, fetched.locate(starts), sizes).view(f"<u{width}")

    def _ends_by_encoding(self) -> Sequence[tuple[Encoding, int]]:
        """Return each page's value encoding and the number of chunks up to its end; nothing if all are equal."""
        if self._are_described_alike:
            return ()
        encodings = [described.format.values for described in self.descriptions]
        if encodings.count(encodings[0]) == len(encodings):
            return ()
        width = 4 if self.descriptions[0].format.large else 2
        return list(zip(encodings, accumulate((self.sizes[0] // width).tolist()), strict=True))
