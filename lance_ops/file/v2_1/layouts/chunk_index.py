"""The chunk index of a mini-block page: where the chunks are, and which values and rows they hold.

Each chunk has a word, which holds its size and the number of its values.

    word = ((size_bytes / 8 - 1) << 4) | log2(num_values)      u16, or u32 in pages with large chunks

The last chunk holds the remaining values, whatever its word says. With repetition, a row may span chunks. Then the
repetition index has two u64 for each chunk: the number of rows that end in it, and the number of entries after them,
which belong to a row that continues in the next chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array, Uint16Array, UnsignedArray
from lance_ops.core.records import dataclass
from lance_ops.encodings import CorruptValues, Picks, check
from lance_ops.file.page_reading import Extent, RowSet, RowSlice
from lance_ops.kernels import read_only

__all__ = ["COUNT_BITS", "ChunkIndex", "RowIndex", "encode_row_index", "encode_words"]


_ALIGNMENT = 8
COUNT_BITS = 4
"""The bits of a word that hold the logarithm of the number of values."""

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
    def decode_pages(
        cls, words: Sequence[UnsignedArray], num_values: Sequence[int], chunks: Sequence[Extent]
    ) -> list[ChunkIndex]:
        """Parse the chunk words of pages: page `i` has `num_values[i]` values, and its chunks are in `chunks[i]`.

        The pages are parsed together, because a call of numpy takes longer than its work on the words of a small page.
        """
        numbers = words[0] if len(words) == 1 else np.concatenate(words)
        lengths = np.array([len(each) for each in words], np.int64)
        extents = np.array(chunks, np.int64).reshape(-1, 2)
        joined = cls.decode_joined(numbers, lengths, np.array(num_values, np.int64), extents[:, 0], extents[:, 1])
        if len(words) == 1:
            return [joined]
        bounds = [0, *accumulate(lengths.tolist())]
        return [
            cls(
                joined.starts[start:stop],
                joined.stops[start:stop],
                joined.first_values[start : stop + 1] - joined.first_values[start],
                None,
            )
            for start, stop in pairwise(bounds)
        ]

    @classmethod
    def decode_joined(
        cls,
        words: UnsignedArray,
        lengths: Int64Array,
        num_values: Int64Array,
        chunk_starts: Int64Array,
        chunk_sizes: Int64Array,
    ) -> ChunkIndex:
        """Parse the words of consecutive pages, `lengths[i]` of page `i`, as those of one page.

        Page `i` has `num_values[i]` values, and its chunks are in `chunk_sizes[i]` bytes from `chunk_starts[i]` on.
        """
        most = int(num_values.max())
        check(most <= _MAX_VALUE_COUNT, f"{most} values")
        numbers, bounds = words.astype(np.int64), _running(lengths)
        sizes, counts = ((numbers >> COUNT_BITS) + 1) * _ALIGNMENT, 1 << (numbers & ((1 << COUNT_BITS) - 1))
        ends = _running(sizes)
        bases = ends[bounds]
        used = bases[1:] - bases[:-1]
        _check_pages((lengths > 0) | (num_values == 0), lambda page: f"{num_values[page]} values and no chunk")
        _check_pages(
            used <= chunk_sizes, lambda page: f"chunks of {used[page]} bytes in a buffer of {chunk_sizes[page]}"
        )
        stops = ends[1:] + (chunk_starts - bases[:-1]).repeat(lengths)
        lasts = bounds[1:][lengths > 0] - 1
        counts[lasts] = 0
        firsts = _running(counts)[bounds]
        rest = num_values - (firsts[1:] - firsts[:-1])
        _check_pages(rest >= 0, lambda page: f"chunks hold more values than the page's {num_values[page]}")
        counts[lasts] = rest[lengths > 0]
        return cls(stops - sizes, stops, _running(counts), None)

    @classmethod
    def concat(cls, parts: Sequence[ChunkIndex], file_starts: Sequence[int] = ()) -> ChunkIndex:
        """Return the chunks of consecutive pages as those of one page.

        If the pages come from several files laid end to end, `file_starts[i]` is where the file of page `i` begins.
        """
        starts, stops = (
            np.concatenate([*each]) for each in zip(*((part.starts, part.stops) for part in parts), strict=True)
        )
        if file_starts:
            shifts = _spread(file_starts, [part.num_chunks for part in parts])
            starts, stops = starts + shifts, stops + shifts
        rows = [part.rows for part in parts if part.rows is not None]
        return cls(
            starts,
            stops,
            _concat_counts([part.first_values for part in parts]),
            RowIndex(_concat_counts([r.ended for r in rows]), _concat_counts([r.begun for r in rows]))
            if rows
            else None,
        )

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


def _check_pages(fits: BoolArray, reason: Callable[[int], str]) -> None:
    """Raise `CorruptValues` for the first page that does not fit, if there is one."""
    if not fits.all():
        raise CorruptValues(reason(int(fits.argmin())))


def _running(numbers: Int64Array) -> Int64Array:
    """Return the sums of the numbers before each one, and of all."""
    sums = np.zeros(len(numbers) + 1, np.int64)
    numbers.cumsum(out=sums[1:])
    return sums


def _spread(numbers: Sequence[int], lengths: Sequence[int]) -> Int64Array:
    """Return each number as often as its length says."""
    return np.array(numbers, np.int64).repeat(lengths)


def _concat_counts(parts: Sequence[Int64Array]) -> Int64Array:
    """Concatenate running counts that each begin with 0 and end with their total."""
    if len(parts) == 1:
        return parts[0]
    bases = [0, *accumulate(int(part[-1]) for part in parts)]
    joined = np.concatenate([*(part[:-1] for part in parts), bases[-1:]])
    joined[:-1] += _spread(bases[:-1], [len(part) - 1 for part in parts])
    return joined


def encode_words(words: Int64Array, large: bool) -> Uint8Array:
    """Return chunk words as a page's buffer; raise `ValueError` for a chunk that is too large for its word."""
    dtype = np.dtype("<u4") if large else np.dtype("<u2")
    most = int(words.max(initial=0))
    if most >= 1 << 8 * dtype.itemsize:
        raise ValueError(f"a chunk of {((most >> COUNT_BITS) + 1) * _ALIGNMENT} bytes")
    return words.astype(dtype).view(np.uint8)


def encode_row_index(rep: Uint16Array, row_level: int, chunk_ends: Int64Array) -> Uint8Array:
    """Return the repetition index of a page whose rows start at `row_level`, cut into chunks at `chunk_ends`."""
    words = np.empty(2 * len(chunk_ends), np.uint64)
    kernels.count_chunk_rows(read_only(rep), row_level, read_only(chunk_ends), words)
    return words.view(np.uint8)
