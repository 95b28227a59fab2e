"""The chunk index of a mini-block page: where the chunks are, and which values and rows they hold.

Each chunk has a word, which holds its size and the number of its values.

    word = ((size_bytes / 8 - 1) << 4) | log2(num_values)      u16, or u32 in pages with large chunks

The last chunk holds the remaining values, whatever its word says. With repetition, a row may span chunks. Then the
repetition index has two u64 for each chunk: the number of rows that end in it, and the number of entries after them,
which belong to a row that continues in the next chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint16Array, UnsignedArray
from lance_ops.encodings import Picks, check
from lance_ops.file.page_reading import Extent, RowSet, RowSlice
from lance_ops.kernels import read_only

__all__ = ["ChunkIndex", "RowIndex", "encode_row_index", "encode_words"]


_ALIGNMENT = 8
_COUNT_BITS = 4
_MAX_VALUE_COUNT = 1 << 48


@dataclass(frozen=True, eq=False)
class RowIndex:
    """The rows of each chunk: `ended[c]` rows end, and `begun[c]` rows begin, before chunk `c`."""

    ended: Int64Array
    begun: Int64Array

    @classmethod
    def decode(cls, data: Uint8Array, num_chunks: int, depth: int, num_rows: int) -> RowIndex:
        """Parse a repetition index; its deeper levels are not needed to find rows."""
        stride = depth + 1
        check(
            depth > 0 and len(data) == num_chunks * stride * 8,
            f"{len(data)} bytes of repetition index for {num_chunks} chunks",
        )
        words = data.view("<u8").reshape(num_chunks, stride)
        check(words.max(initial=0) <= num_rows + _MAX_VALUE_COUNT, "a repetition index with absurd counts")
        ended = np.zeros(num_chunks + 1, np.int64)
        np.cumsum(words[:, 0].astype(np.int64), out=ended[1:])
        check((ended[1:] >= ended[:-1]).all(), "a repetition index whose counts overflow")
        begun = ended.copy()
        begun[1:] += words[:, 1] > 0
        check(begun[-1] == ended[-1] == num_rows, f"a repetition index of {begun[-1]} rows for a page of {num_rows}")
        return cls(ended, begun)


@dataclass(frozen=True, eq=False)
class ChunkIndex:
    """The chunks of one or several pages: chunk `c` is the bytes `[starts[c], stops[c])` of the file.

    `first_values` has the number of values before each chunk, and their total. `rows` is None if every value is a row.
    """

    starts: Int64Array
    stops: Int64Array
    first_values: Int64Array
    rows: RowIndex | None

    @classmethod
    def decode_words(cls, words: UnsignedArray, num_values: int, chunks: Extent) -> ChunkIndex:
        """Parse the chunk words of a page of `num_values` values, whose chunks are in this extent."""
        check(num_values <= _MAX_VALUE_COUNT, f"{num_values} values")
        numbers = words.astype(np.int64)
        sizes = ((numbers >> _COUNT_BITS) + 1) * _ALIGNMENT
        counts = 1 << (numbers & ((1 << _COUNT_BITS) - 1))
        stops = sizes.cumsum()
        total = int(stops[-1]) if len(stops) else 0
        check(total <= chunks.size, f"chunks of {total} bytes in a buffer of {chunks.size}")
        first_values = np.zeros(len(words) + 1, np.int64)
        counts.cumsum(out=first_values[1:])
        check(len(words) > 0 or num_values == 0, f"{num_values} values and no chunk")
        if len(words):
            check(first_values[-2] <= num_values, f"chunks hold more values than the page's {num_values}")
            first_values[-1] = num_values
        stops += chunks.position
        return cls(stops - sizes, stops, first_values, None)

    @classmethod
    def concat(cls, parts: Sequence[ChunkIndex]) -> ChunkIndex:
        """Return the chunks of consecutive pages as those of one page."""
        rows = [part.rows for part in parts if part.rows is not None]
        return cls(
            np.concatenate([part.starts for part in parts]),
            np.concatenate([part.stops for part in parts]),
            _concat_counts([part.first_values for part in parts]),
            RowIndex(_concat_counts([r.ended for r in rows]), _concat_counts([r.begun for r in rows]))
            if rows
            else None,
        )

    def shifted(self, distance: int) -> ChunkIndex:
        """Return the same chunks at positions that are higher by `distance`."""
        return ChunkIndex(self.starts + distance, self.stops + distance, self.first_values, self.rows)

    @property
    def num_chunks(self) -> int:
        """Number of chunks."""
        return len(self.starts)

    def counts_of(self, chunks: slice | Int64Array) -> Int64Array:
        """Return how many values these chunks have."""
        counts: Int64Array = self.first_values[1:][chunks] - self.first_values[:-1][chunks]
        return counts

    def span(self, rows: RowSlice) -> slice:
        """Return the chunks that hold any part of these rows (elements, where rows have several)."""
        begun = self.first_values if self.rows is None else self.rows.begun
        ended = self.first_values if self.rows is None else self.rows.ended
        first = int(begun.searchsorted(rows.first, side="right")) - 1
        return slice(first, int(ended.searchsorted(rows.last, side="right")))

    def locate(self, values: Int64Array) -> tuple[Int64Array, Picks]:
        """Return the chunks that hold these values, ascending, and where in those chunks each value is."""
        chunks, chunk_of, within = np.empty((3, len(values)), np.int64)
        touched = kernels.locate_values(read_only(self.first_values), read_only(values), chunks, chunk_of, within)
        return chunks[:touched], Picks(chunk_of, within)

    def chunks_of(self, rows: RowSet) -> Int64Array:
        """Return the chunks that hold any part of these rows, ascending; a row may span several chunks."""
        assert self.rows is not None
        lasts = np.searchsorted(self.rows.ended, rows.indices, side="right") - 1
        firsts = np.searchsorted(self.rows.begun, rows.indices, side="right") - 1
        if (firsts == lasts).all():
            return _without_repeats(lasts)
        counts = lasts - firsts + 1
        ends = np.cumsum(counts)
        return _without_repeats(np.repeat(firsts - (ends - counts), counts) + np.arange(int(ends[-1])))


def _without_repeats(ascending: Int64Array) -> Int64Array:
    fresh = np.append(True, ascending[1:] > ascending[:-1])
    kept: Int64Array = ascending[fresh]
    return kept


def _concat_counts(parts: Sequence[Int64Array]) -> Int64Array:
    """Concatenate running counts that each begin with 0 and end with their total."""
    bases = np.cumsum([0, *(int(part[-1]) for part in parts)])
    shifted = [part[:-1] + base for part, base in zip(parts, bases[:-1].tolist(), strict=True)]
    return np.concatenate([*shifted, bases[-1:]])


def encode_words(words: Int64Array, large: bool) -> Uint8Array:
    """Return chunk words as a page's buffer; raise `ValueError` for a chunk that is too large for its word."""
    dtype = np.dtype("<u4") if large else np.dtype("<u2")
    most = int(words.max(initial=0))
    if most >= 1 << 8 * dtype.itemsize:
        raise ValueError(f"a chunk of {((most >> _COUNT_BITS) + 1) * _ALIGNMENT} bytes")
    return words.astype(dtype).view(np.uint8)


def encode_row_index(rep: Uint16Array, row_level: int, chunk_ends: Int64Array) -> Uint8Array:
    """Return the repetition index of a page whose rows start at `row_level`, cut into chunks at `chunk_ends`."""
    words = np.empty(2 * len(chunk_ends), np.uint64)
    kernels.count_chunk_rows(read_only(rep), row_level, read_only(chunk_ends), words)
    return words.view(np.uint8)
