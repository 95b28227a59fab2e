"""Merge sorted streams of rows, a block at a time.

A round looks at the current batch of every stream. The smallest of their last values is the bound: no later row of any
stream comes before it, so all rows up to it are sorted together and leave. Each round uses up at least one batch.

Ties keep the streams' order, and within a stream the rows' order, so that an index does not depend on how much memory
its sort had: streams after the one whose last value is the bound hold back rows equal to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lance_ops.indices.sort_keys import Key, Side, rank_in, sort_indices, sort_keys

__all__ = ["merge_sorted", "sort_batch"]


def sort_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Sort a batch by its first column, stably."""
    return batch.take(sort_indices(sort_keys(batch.column(0))))


def merge_sorted(streams: Sequence[Iterable[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all streams sorted by the first column; each stream must be sorted itself."""
    heads = [head for stream in streams if (head := _Head(iter(stream))).advance()]
    while len(heads) > 1:
        pivot = min(range(len(heads)), key=lambda index: heads[index].order)
        bound = heads[pivot].last
        sides: Iterator[Side] = ("right" if index <= pivot else "left" for index in range(len(heads)))
        pieces = [head.pop(head.rank(bound, side)) for head, side in zip(heads, sides, strict=True)]
        yield sort_batch(pa.concat_batches(pieces))
        heads = [head for head in heads if head.remaining or head.advance()]
    for head in heads:
        yield from head.rest()


class _Head:
    """A stream and the rows of its current batch that have not left yet."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches

    @property
    def remaining(self) -> int:
        return int(self._batch.num_rows)

    def advance(self) -> bool:
        """Take the next batch that has rows; False at the end."""
        for batch in self._batches:
            if batch.num_rows:
                self._batch, self._keys = batch, sort_keys(batch.column(0))
                self.last: Key | None = self._keys[-1].as_py()
                return True
        return False

    @property
    def order(self) -> tuple[bool, Key | None]:
        """Sorts heads by their last value, null first."""
        return self.last is not None, self.last

    def rank(self, bound: Key | None, side: Side) -> int:
        return rank_in(self._keys, bound, side)

    def pop(self, num_rows: int) -> pa.RecordBatch:
        popped = self._batch.slice(0, num_rows)
        self._batch, self._keys = self._batch.slice(num_rows), self._keys.slice(num_rows)
        return popped

    def rest(self) -> Iterator[pa.RecordBatch]:
        yield self._batch
        yield from self._batches
