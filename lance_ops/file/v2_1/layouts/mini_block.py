"""Mini-block: small values in chunks of a few KiB, each compressed on its own.

    page buffers    chunk words | chunks | [dictionary] | [repetition index]

`chunk_index` says what words and repetition index are, `chunk_format` what a chunk is. Levels count entries; chunk
words count values. With a dictionary the values are positions in it: u32, or as wide as the keys of a column that is a
dictionary in Arrow too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops import kernels
from lance_ops.core.arrow import new_bytes
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array
from lance_ops.encodings import (
    CorruptValues,
    EncodedChunks,
    Encoding,
    FixedStatistics,
    FixedWidth,
    Picks,
    Values,
    check,
    choose_block,
    choose_levels,
    choose_limits,
    choose_mini_block,
    encoding_from_pb,
)
from lance_ops.file.arrays import array_of, own_copy
from lance_ops.file.container import Extent
from lance_ops.file.encoded import EncodedPage
from lance_ops.file.items import take_items
from lance_ops.file.rows import Rows, RowSet, RowSlice
from lance_ops.file.source import Ranges, SourceBytes, Steps
from lance_ops.file.v2_1.layouts.chunk_format import ChunkFormat, ChunkParts, Turn
from lance_ops.file.v2_1.layouts.chunk_index import ChunkIndex, RowIndex, encode_row_index, encode_words
from lance_ops.file.v2_1.layouts.chunk_rows import find_rows, find_slice
from lance_ops.file.v2_1.layouts.contract import (
    LeafRows,
    PageChoice,
    PageContext,
    PageLayout,
    ReadLayout,
    ToArray,
    check_entries,
    levels_as_values,
    names_of,
    read_scheme,
)
from lance_ops.file.v2_1.levels import EncodedLevels, Entries
from lance_ops.kernels import read_only
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["MiniBlockPage", "encode_mini_block"]


_ALIGNMENT = 8
_MAX_NUM_BUFFERS = 64
_MAX_U16 = (1 << 16) - 1
_POSITION_TYPES = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


@dataclass(frozen=True, eq=False)
class _Index:
    """What is needed before any chunk can be read."""

    chunks: ChunkIndex
    dictionary: pa.Array | None


class MiniBlockPage(PageLayout):
    """A mini-block page; keeps its index and dictionary once they are loaded."""

    MESSAGE: ClassVar[str] = "mini_block_layout"

    def __init__(self, message: pb.MiniBlockLayout, context: PageContext) -> None:
        self._context = context
        self._scheme = read_scheme(message.layers, context.leaf)
        rep = encoding_from_pb(message.rep_compression) if message.HasField("rep_compression") else None
        definition = encoding_from_pb(message.def_compression) if message.HasField("def_compression") else None
        values = encoding_from_pb(message.value_compression)
        self._format = ChunkFormat(self._scheme, rep, definition, values, message.num_buffers, message.has_large_chunk)
        self._dictionary = encoding_from_pb(message.dictionary) if message.HasField("dictionary") else None
        self._num_dictionary_items = message.num_dictionary_items
        self._num_items = message.num_items
        self._index_depth = message.repetition_index_depth
        self._index: _Index | None = None
        self._joined: tuple[tuple[MiniBlockPage, ...], ChunkIndex] | None = None
        check(message.num_buffers <= _MAX_NUM_BUFFERS, f"{message.num_buffers} buffers in a chunk")
        check(rep is not None or not self._scheme.max_rep, "lists without repetition levels")
        if rep is None:
            check(self._num_items == context.length, f"{self._num_items} values in a page of {context.length} rows")
        context.buffer(1 + (self._dictionary is not None) + (rep is not None))  # and so all before it

    @classmethod
    def from_pb(cls, message: pb.MiniBlockLayout, context: PageContext, nested: ReadLayout) -> Self:
        return cls(message, context)

    def encodings(self) -> Sequence[str]:
        named = names_of(self._format.values)
        if self._dictionary is not None:
            named = ["dictionary", *named, *(f"dictionary:{name}" for name in names_of(self._dictionary))]
        for kind, encoding in (("rep", self._format.rep), ("def", self._format.definition)):
            if encoding is not None:
                named += [f"{kind}:{name}" for name in names_of(encoding)]
        return ["mini_block", *named]

    @property
    def kin(self) -> Hashable | None:
        # positions in a dictionary mean nothing in a page that has another
        return None if self._dictionary is not None else self._format

    @property
    def alike(self) -> Hashable | None:
        return None if self._dictionary is not None else self._format.alike

    def read(self, rows: Rows) -> Steps[LeafRows]:
        return (yield from self.read_kin([self], [rows]))

    @classmethod
    def read_kin(cls, pages: Sequence[Self], rows: Sequence[Rows], begins: Sequence[int] = ()) -> Steps[LeafRows]:
        head = pages[0]
        elements = [part.scaled(head._context.leaf.elements_per_row) for part in rows]
        whole = all(
            isinstance(part, RowSlice) and part.count == page._context.length
            for part, page in zip(elements, pages, strict=True)
        )
        placed = list(zip(pages, begins or [0] * len(pages), strict=True))
        missing = [(page, begin) for page, begin in placed if page._index is None]
        fetched: SourceBytes | None = None
        if missing:
            extents = [(begin, extent) for page, begin in missing for extent in page._extents(with_chunks=whole)]
            fetched = yield Ranges.of(*((begin + extent.position, begin + extent.end) for begin, extent in extents))
            for page, begin in missing:
                page._index = page._load(fetched, begin)
        index, wanted = head._join(pages, begins), _joined_rows(elements, [page._context.length for page in pages])
        num_rows = sum(part.count for part in rows)
        known = fetched if len(missing) == len(pages) else None
        ends = _ends_by_encoding(pages) if len(pages) > 1 else ()
        return (yield from head._read(num_rows, wanted, whole, index, ends, known))

    def _extents(self, *, with_chunks: bool) -> Sequence[Extent]:
        buffers = self._context.buffers
        return buffers if with_chunks else (buffers[0], *buffers[2:])

    def _join(self, pages: Sequence[MiniBlockPage], begins: Sequence[int]) -> ChunkIndex:
        """Return the chunks of all these pages, the first of which is this one; kept for the next read of the same.

        Those of several files are not kept: they are others for other files.
        """
        indexes = [page._index.chunks for page in pages if page._index is not None]
        if begins:
            indexes = [index.moved(begin) for index, begin in zip(indexes, begins, strict=True)]
        if len(pages) == 1:
            return indexes[0]
        if begins:
            return ChunkIndex.join(indexes)
        if self._joined is None or self._joined[0] != tuple(pages):
            self._joined = tuple(pages), ChunkIndex.join(indexes)
        return self._joined[1]

    def _read(
        self,
        num_rows: int,
        elements: Rows,
        whole: bool,
        index: ChunkIndex,
        ends: Sequence[tuple[Encoding, int]],
        fetched: SourceBytes | None,
    ) -> Steps[LeafRows]:
        """Read chunks and keep what is wanted of them; `fetched` holds them already where all are.

        Where values are encoded in several ways, `ends` says before which chunk each of them ends.
        """
        chunks: slice | Int64Array
        picks: Picks | None = None
        if isinstance(elements, RowSlice):
            chunks = index.span(elements)
        elif index.rows is None:
            chunks, picks = index.locate(elements.indices)
        else:
            chunks = index.chunks_of(elements)
        starts, stops = index.starts[chunks], index.stops[chunks]
        if fetched is None or not whole:
            fetched = yield Ranges(starts, stops)
        counts = index.counts_of(chunks)
        positions = fetched.locate(starts)
        parts = self._format.locate(fetched.data, positions, positions + (stops - starts), counts)
        turns = _turns(ends, chunks) if ends else ()
        if picks is not None:
            entries, values = self._format.pick_entries(parts, picks), self._format.pick_values(parts, picks, turns)
        elif isinstance(elements, RowSet):
            found = find_rows(elements, index, chunks, self._format, parts)
            entries, values = found.entries, self._format.pick_values(parts, found.picks, turns)
        else:
            entries, values = self._read_slice(elements, whole, index, chunks, parts, turns)
        check_entries(self._scheme, entries)
        dictionary = None if self._index is None else self._index.dictionary
        return self._context.finish(num_rows, self._scheme, entries, self._to_array(values, dictionary))

    def _read_slice(
        self,
        elements: RowSlice,
        whole: bool,
        index: ChunkIndex,
        chunks: slice | Int64Array,
        parts: ChunkParts,
        turns: Sequence[Turn],
    ) -> tuple[Entries, Values]:
        values, entries = self._format.decode_values(parts, turns), self._format.decode_entries(parts)
        assert isinstance(chunks, slice)
        if index.rows is not None:
            self._check_count(entries, values)
            if whole:
                return entries, values
            found, owned = find_slice(elements, index.rows, chunks, entries, parts, self._scheme)
            return entries.take(found), values.slice(owned.start, owned.stop)
        if whole:
            return entries, values
        skipped = int(index.first_values[chunks.start])
        wanted = slice(elements.start - skipped, elements.stop - skipped)
        return entries.take(wanted), values.slice(wanted.start, wanted.stop)

    def _load(self, fetched: SourceBytes, begin: int) -> _Index:
        """Decode what was fetched of a file that begins at `begin`."""
        words_at, chunks_at = self._context.buffers[:2]
        width = 4 if self._format.large else 2
        check(words_at.size % width == 0, f"{words_at.size} bytes of {width}-byte chunk words")
        words = fetched.view(begin + words_at.position, begin + words_at.end).view(f"<u{width}")
        chunks = ChunkIndex.decode_words(words, self._num_items, chunks_at)
        if self._format.rep is not None:
            extent = self._context.buffers[2 + (self._dictionary is not None)]
            data = fetched.view(begin + extent.position, begin + extent.end)
            rows = RowIndex.decode(data, chunks.num_chunks, self._index_depth, self._context.length)
            chunks = replace(chunks, rows=rows)
        dictionary = None
        if self._dictionary is not None:
            extent = self._context.buffers[2]
            data = fetched.view(begin + extent.position, begin + extent.end)
            value_type = self._context.leaf.arrow_type
            if pt.is_dictionary(value_type):
                value_type = value_type.value_type
            items = self._dictionary.decode_block(data, self._num_dictionary_items)
            check(items.num_values == self._num_dictionary_items, "a dictionary that is not as long as it says")
            # kept with the open file, which must not keep the map of it
            dictionary = own_copy(array_of(items, value_type))
        return _Index(chunks, dictionary)

    def _check_count(self, entries: Entries, values: Values) -> None:
        visible = entries.count
        if entries.definition is not None and self._scheme.has_invisible:
            visible = int(np.count_nonzero(entries.definition <= self._scheme.max_visible_def))
        check(visible == values.num_values, f"{visible} visible entries for {values.num_values} values")

    def _to_array(self, values: Values, dictionary: pa.Array | None) -> ToArray:
        if dictionary is None:
            return self._context.to_array(values)
        leaf_type = self._context.leaf.arrow_type
        if not isinstance(values, FixedWidth) or values.bits_per_value not in _POSITION_TYPES:
            raise CorruptValues("positions in a dictionary that are no numbers")
        position_type = _POSITION_TYPES[values.bits_per_value]

        def build(validity: BoolArray | None) -> pa.Array:
            positions = array_of(values, position_type, validity)
            check(_all_below(values, validity, len(dictionary)), "a position beyond the dictionary")
            if pt.is_dictionary(leaf_type):
                keys = positions.cast(leaf_type.index_type)
                return pa.DictionaryArray.from_arrays(keys, dictionary, ordered=leaf_type.ordered)
            return take_items(dictionary, positions, sum(extent.size for extent in self._context.buffers))

        return build


def encode_mini_block(
    values: Values,
    levels: EncodedLevels,
    choice: PageChoice,
    dictionary: Values | None = None,
    statistics: FixedStatistics | None = None,
) -> EncodedPage | None:
    """Return a page of the visible values, which are positions if there is a dictionary.

    `statistics` are those of the values, where they were taken already. None if it cannot be one: too many levels
    between two of its values.
    """
    encoding = choose_mini_block(values, choice.options, choice.version, statistics)
    chunks = encoding.encode_chunks(values, choose_limits(values, choice.options, choice.version))
    has_levels = levels.rep is not None or levels.definition is not None
    chunk_ends = _entry_ends(levels, chunks.num_values) if has_levels else np.zeros(chunks.num_chunks, np.int64)
    num_levels = np.diff(chunk_ends, prepend=0) if has_levels else chunk_ends
    large = choice.large_chunks
    description = pb.PageLayout()
    layout = description.mini_block_layout
    layout.value_compression.CopyFrom(encoding.to_pb())
    layout.layers.extend(levels.scheme.kinds)  # type: ignore[arg-type]  # numbers of the enum
    layout.num_buffers, layout.num_items, layout.has_large_chunk = len(chunks.data), values.num_values, large
    level_parts: list[EncodedChunks] = []
    for kind, part in (("rep_compression", levels.rep), ("def_compression", levels.definition)):
        if part is not None:
            as_values = levels_as_values(part)
            compression = choose_levels(as_values, num_levels, choice.version)
            level_parts.append(compression.encode_blocks(as_values, num_levels))
            getattr(layout, kind).CopyFrom(compression.to_pb())
    counted = (num_levels, *(part.sizes[0] for part in level_parts)) if has_levels else ()
    if any(int(sizes.max(initial=0)) > _MAX_U16 for sizes in counted):
        return None
    words, body = _join_chunks(num_levels, level_parts, chunks, large)
    if not large and int(words.max(initial=0)) > _MAX_U16:
        return None
    buffers = [encode_words(words, large), body]
    if dictionary is not None:
        block = choose_block(dictionary, choice.options, choice.version)
        buffers.append(block.encode_block(dictionary))
        layout.dictionary.CopyFrom(block.to_pb())
        layout.num_dictionary_items = dictionary.num_values
    length = levels.num_entries
    if levels.rep is not None:
        layout.repetition_index_depth = 1
        buffers.append(encode_row_index(levels.rep, levels.scheme.max_rep, chunk_ends))
        length = levels.num_rows
    return EncodedPage(description, tuple(buffers), length)


def _entry_ends(levels: EncodedLevels, num_values: Int64Array) -> Int64Array:
    """Return after which entry each chunk ends: with its last value; the last chunk takes all that are left."""
    if levels.definition is None or not levels.scheme.has_invisible:
        return np.cumsum(num_values)
    ends = np.empty(len(num_values), np.int64)
    kernels.end_chunks(read_only(levels.definition), levels.scheme.max_visible_def, read_only(num_values), ends)
    ends[-1] = levels.num_entries
    return ends


def _join_chunks(
    num_levels: Int64Array, level_parts: Sequence[EncodedChunks], chunks: EncodedChunks, large: bool
) -> tuple[Int64Array, Uint8Array]:
    """Return the word of each chunk, and all chunks end to end: headers, levels and values, every part padded."""
    parts = [
        (data, sizes) for part in (*level_parts, chunks) for data, sizes in zip(part.data, part.sizes, strict=True)
    ]
    num_chunks, width = chunks.num_chunks, 4 if large else 2
    header_bytes = 2 + 2 * len(level_parts) + width * len(chunks.data)
    room = sum(len(data) for data, _ in parts) + num_chunks * (header_bytes + _ALIGNMENT * (1 + len(parts)))
    out, places, words = new_bytes(room), np.empty(num_chunks, np.int64), np.empty(num_chunks, np.int64)
    part_sizes = np.concatenate([np.empty(0, np.int64), *(sizes for _, sizes in parts)])
    counts = read_only(chunks.num_values), read_only(num_levels), read_only(part_sizes)
    num_bytes = kernels.write_headers(*counts, len(level_parts), width, out, places, words)
    for data, sizes in parts:
        kernels.write_parts(read_only(data), read_only(sizes), places, out)
    return words, out[:num_bytes]


def _joined_rows(parts: Sequence[Rows], lengths: Sequence[int]) -> Rows:
    """Return rows of several pages, all of them or none in one run, as rows of the pages' chunks put end to end."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return first
    bases = np.cumsum(lengths) - lengths
    if isinstance(first, RowSlice) and isinstance(last, RowSlice):
        return RowSlice(first.start, int(bases[-1]) + last.stop)
    return RowSet(np.concatenate([part.indices + base for part, base in zip(parts, bases, strict=True)]))


def _ends_by_encoding(pages: Sequence[MiniBlockPage]) -> Sequence[tuple[Encoding, int]]:
    """Return how the values of each page are encoded, with the number of chunks up to its end; nothing if all alike."""
    encodings = [page._format.values for page in pages]
    if encodings.count(encodings[0]) == len(encodings):
        return ()
    counts = [page._index.chunks.num_chunks for page in pages if page._index is not None]
    return list(zip(encodings, accumulate(counts), strict=True))


def _turns(ends: Sequence[tuple[Encoding, int]], chunks: slice | Int64Array) -> list[Turn]:
    """Return which of these chunks, ascending, are encoded in which way."""
    last = [end for _, end in ends]
    if isinstance(chunks, slice):
        stops = [min(max(end - chunks.start, 0), chunks.stop - chunks.start) for end in last]
    else:
        stops = chunks.searchsorted(last).tolist()
    bounds = pairwise([0, *stops])
    return [Turn(encoding, *bound) for (encoding, _), bound in zip(ends, bounds, strict=True) if bound[0] < bound[1]]


def _all_below(values: FixedWidth, validity: BoolArray | None, bound: int) -> bool:
    """Return whether every valid position is within bounds; those of nulls may be anything."""
    positions = values.as_integers()
    if not len(positions) or int(positions.max()) < bound:
        return True
    return validity is not None and int(positions[validity].max(initial=0)) < max(bound, 1)
