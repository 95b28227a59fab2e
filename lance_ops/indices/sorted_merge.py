"""Merge sorted streams of rows, a block at a time.

Each round takes the current batch of every stream. The smallest of their last rows is the bound: no later row of any
stream comes before it. So all rows up to the bound are merged and yielded. Each round uses up at least one batch.

Equal rows keep the streams' order, and within a stream the rows' order, so that an index does not depend on the memory
that its sort had. Streams after the one whose last row is the bound keep their rows equal to the bound for later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lance_ops.indices.row_order import FIRST_COLUMN, RowOrder, SortKey
from lance_ops.indices.sort_keys import Side

__all__ = ["merge_sorted"]


def merge_sorted(
    streams: Sequence[Iterable[pa.RecordBatch]], order: RowOrder = FIRST_COLUMN
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all streams in `order`; each stream must be in this order."""
    heads = [head for stream in streams if (head := _StreamHead(iter(stream), order)).advance()]
    while len(heads) > 1:
        pivot = min(range(len(heads)), key=lambda index: heads[index].last)
        bound = heads[pivot].last
        sides: Iterator[Side] = ("right" if index <= pivot else "left" for index in range(len(heads)))
        pieces = [head.pop(bound, side) for head, side in zip(heads, sides, strict=True)]
        yield order.merge(pieces)
        heads = [head for head in heads if head.remaining or head.advance()]
    for head in heads:
        yield from head.rest()


class _StreamHead:
    """A stream, and the rows of its current batch that are still to be yielded."""

    last: SortKey

    def __init__(self, batches: Iterator[pa.RecordBatch], order: RowOrder) -> None:
        self._batches = batches
        self._order = order

    @property
    def remaining(self) -> int:
        return int(self._batch.num_rows) - self._popped

    def advance(self) -> bool:
        """Go to the next batch that has rows; return False at the end of the stream."""
        for batch in self._batches:
            if batch.num_rows:
                self._batch, self._keys, self._popped = batch, self._order.keys(batch), 0
                self.last = self._keys[-1]
                return True
        return False

    def pop(self, bound: SortKey, side: Side) -> pa.RecordBatch:
        """Return and skip the rows before `bound`; for side "right" also the rows equal to it."""
        start, self._popped = self._popped, self._keys.rank(bound, side, self._popped)
        return self._batch.slice(start, self._popped - start)

    def rest(self) -> Iterator[pa.RecordBatch]:
        yield self._batch.slice(self._popped)
        yield from self._batches
