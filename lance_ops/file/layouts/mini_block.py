"""Mini-block: small values in chunks of a few KiB, each compressed on its own.

    page buffers    chunk words | chunks | [dictionary] | [repetition index]
    chunk           u16 num_levels | [u16 rep size] | [u16 def size] | size of each value buffer (u16, or u32 in pages
                    with large chunks) | repetition levels | definition levels | value buffers
                    the header and every buffer are padded to 8 bytes

`num_levels` is 0 where neither kind of levels is stored. Levels count entries; chunk words count values. With a
dictionary the values are positions in it: u32, or as wide as the keys of a column that is a dictionary in Arrow too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_ops import kernels
from lance_ops.encodings.choose import choose_block, choose_levels, choose_mini_block
from lance_ops.encodings.contract import DEFAULT_LIMITS, ChunkBuffers, CorruptValues, EncodedChunks, check
from lance_ops.encodings.gather import scatter_ranges
from lance_ops.encodings.registry import encoding_from_pb
from lance_ops.encodings.stats import FixedStatistics
from lance_ops.encodings.values import FixedWidth, Values
from lance_ops.file.arrays import array_of, select
from lance_ops.file.encoded import EncodedPage
from lance_ops.file.items import take_items
from lance_ops.file.layouts.chunk_index import ChunkIndex, RowIndex, encode_row_index, encode_words
from lance_ops.file.layouts.chunk_rows import find_rows
from lance_ops.file.layouts.contract import (
    LeafRows,
    PageChoice,
    PageContext,
    PageLayout,
    ReadLayout,
    ToArray,
    check_entries,
    levels_as_values,
    levels_of,
    names_of,
    read_scheme,
)
from lance_ops.file.levels import EncodedLevels, Entries
from lance_ops.file.rows import Rows, RowSlice
from lance_ops.file.source import Ranges, SourceBytes, Steps
from lance_ops.kernels.arrays import readable
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["MiniBlockPage", "encode_mini_block"]

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Selection = slice | Integers

_ALIGNMENT = 8
_MAX_NUM_BUFFERS = 64
_MAX_U16 = (1 << 16) - 1
_MAX_SMALL_CHUNK = 8 << 12
_PAD = 0xFE
_PAD_WORD = 0xFEFEFEFEFEFEFEFE
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
        self._rep = encoding_from_pb(message.rep_compression) if message.HasField("rep_compression") else None
        self._def = encoding_from_pb(message.def_compression) if message.HasField("def_compression") else None
        self._values = encoding_from_pb(message.value_compression)
        self._dictionary = encoding_from_pb(message.dictionary) if message.HasField("dictionary") else None
        self._num_dictionary_items = message.num_dictionary_items
        self._num_buffers = message.num_buffers
        self._num_items = message.num_items
        self._index_depth = message.repetition_index_depth
        self._large = message.has_large_chunk
        self._index: _Index | None = None
        check(self._num_buffers <= _MAX_NUM_BUFFERS, f"{self._num_buffers} buffers in a chunk")
        check(self._rep is not None or not self._scheme.max_rep, "lists without repetition levels")
        if self._rep is None:
            check(self._num_items == context.length, f"{self._num_items} values in a page of {context.length} rows")
        for index in range(2 + (self._dictionary is not None) + (self._rep is not None)):
            context.buffer(index)

    @classmethod
    def from_pb(cls, message: pb.MiniBlockLayout, context: PageContext, nested: ReadLayout) -> Self:
        return cls(message, context)

    def encodings(self) -> Sequence[str]:
        named = names_of(self._values)
        if self._dictionary is not None:
            named = ["dictionary", *named, *(f"dictionary:{name}" for name in names_of(self._dictionary))]
        for kind, encoding in (("rep", self._rep), ("def", self._def)):
            if encoding is not None:
                named += [f"{kind}:{name}" for name in names_of(encoding)]
        return ["mini_block", *named]

    def read(self, rows: Rows) -> Steps[LeafRows]:
        elements = rows.scaled(self._context.leaf.elements_per_row)
        whole = isinstance(elements, RowSlice) and elements.count == self._context.length
        chunk_buffer = self._context.buffers[1]
        fetched: SourceBytes | None = None
        index = self._index
        if index is None:
            extents = self._context.buffers if whole else (self._context.buffers[0], *self._context.buffers[2:])
            fetched = yield Ranges.of(*((extent.position, extent.end) for extent in extents))
            index = self._index = self._load(fetched)
        chunks = index.chunks.chunks_of(elements)
        starts = index.chunks.starts + chunk_buffer.position
        if fetched is None or not whole:
            fetched = yield Ranges(starts[chunks], starts[chunks + 1])
        parts = self._parse_headers(fetched, starts, chunks, index.chunks)
        return self._select(rows, elements, whole, index, chunks, parts)

    def _load(self, fetched: SourceBytes) -> _Index:
        words_at, chunks_at = self._context.buffers[:2]
        width = 4 if self._large else 2
        check(words_at.size % width == 0, f"{words_at.size} bytes of {width}-byte chunk words")
        words = fetched.view(words_at.position, words_at.end).view(f"<u{width}")
        chunks = ChunkIndex.decode_words(words, self._num_items, chunks_at.size)
        if self._rep is not None:
            extent = self._context.buffers[2 + (self._dictionary is not None)]
            data = fetched.view(extent.position, extent.end)
            rows = RowIndex.decode(data, chunks.num_chunks, self._index_depth, self._context.length)
            chunks = replace(chunks, rows=rows)
        dictionary = None
        if self._dictionary is not None:
            extent = self._context.buffers[2]
            data = fetched.view(extent.position, extent.end)
            value_type = self._context.leaf.arrow_type
            if pt.is_dictionary(value_type):
                value_type = value_type.value_type
            items = self._dictionary.decode_block(data, self._num_dictionary_items)
            check(items.num_values == self._num_dictionary_items, "a dictionary that is not as long as it says")
            dictionary = array_of(items, value_type)
        return _Index(chunks, dictionary)

    def _parse_headers(
        self, fetched: SourceBytes, starts: Integers, chunks: Integers, index: ChunkIndex
    ) -> _ChunkParts:
        data = fetched.data
        positions = fetched.locate(starts[chunks])
        ends = positions + (starts[chunks + 1] - starts[chunks])
        has_rep, has_def = self._rep is not None, self._def is not None
        num_level_words = 1 + has_rep + has_def
        width = 4 if self._large else 2
        header_bytes = 2 * num_level_words + width * self._num_buffers
        check((positions + header_bytes <= ends).all(), "a chunk is shorter than its header")
        headers = data[positions[:, None] + np.arange(header_bytes)]
        levels = np.ascontiguousarray(headers[:, : 2 * num_level_words]).view("<u2").astype(np.int64)
        sizes = np.ascontiguousarray(headers[:, 2 * num_level_words :]).view(f"<u{width}").astype(np.int64)
        all_sizes = np.concatenate([levels[:, 1:], sizes], axis=1)
        padded = _padded(all_sizes)
        first = positions + _padded(header_bytes)
        buffer_ends = first[:, None] + np.cumsum(padded, axis=1)
        buffer_starts = buffer_ends - padded
        check((buffer_starts + all_sizes <= ends[:, None]).all(), "a chunk's buffers are longer than the chunk")
        columns = range(all_sizes.shape[1])
        located = [(buffer_starts[:, i], all_sizes[:, i]) for i in columns]
        counts = index.first_values[chunks + 1] - index.first_values[chunks]
        num_levels = levels[:, 0] if has_rep or has_def else counts
        if has_def and not has_rep:
            check((num_levels == counts).all(), "definition levels are not one a value")
        rep = ChunkBuffers(data, (located[0][0],), (located[0][1],), num_levels) if has_rep else None
        at = located[has_rep] if has_def else None
        definition = ChunkBuffers(data, (at[0],), (at[1],), num_levels) if at is not None else None
        value_parts = located[has_rep + has_def :]
        values = ChunkBuffers(data, tuple(s for s, _ in value_parts), tuple(z for _, z in value_parts), counts)
        return _ChunkParts(num_levels, rep, definition, values)

    def _decode_entries(self, parts: _ChunkParts) -> Entries:
        rep = definition = None
        if self._rep is not None and parts.rep is not None:
            rep = levels_of(self._rep.decode_blocks(parts.rep))
        if self._def is not None and parts.definition is not None:
            definition = levels_of(self._def.decode_blocks(parts.definition))
        count = int(parts.num_levels.sum())
        check(rep is None or len(rep) == count, "repetition levels are not one an entry")
        check(definition is None or len(definition) == count, "definition levels are not one an entry")
        return Entries(count, rep, definition)

    def _select(
        self, rows: Rows, elements: Rows, whole: bool, index: _Index, chunks: Integers, parts: _ChunkParts
    ) -> LeafRows:
        """Decode chunks and keep what is wanted of them."""
        values = self._values.decode_chunks(parts.values)
        check(values.num_values == parts.values.total_values, "an encoding that lost count of its values")
        entries = self._decode_entries(parts)
        if index.chunks.rows is None:
            if not whole:
                wanted = _wanted_values(elements, index.chunks, chunks)
                entries, values = entries.take(wanted), _take(values, wanted)
        else:
            self._check_count(entries, values)
            if not whole:
                found = find_rows(elements, index.chunks.rows, chunks, entries, parts.num_levels, self._scheme)
                values = _take(values, found.values(parts.values.num_values))
                entries = entries.take(found.entries)
        check_entries(self._scheme, entries)
        return self._context.finish(rows, self._scheme, entries, self._to_array(values, index.dictionary))

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

        def build(validity: Bools | None) -> pa.Array:
            positions = array_of(values, position_type, validity)
            check(_all_below(values, validity, len(dictionary)), "a position beyond the dictionary")
            if pt.is_dictionary(leaf_type):
                return pa.DictionaryArray.from_arrays(positions.cast(leaf_type.index_type), dictionary)
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
    chunks = encoding.encode_chunks(values, DEFAULT_LIMITS)
    chunk_ends = _entry_ends(levels, chunks.num_values)
    num_levels = np.diff(chunk_ends, prepend=0)
    large = choice.large_chunks
    layout = pb.MiniBlockLayout(
        value_compression=encoding.to_pb(),
        layers=levels.scheme.kinds,  # type: ignore[arg-type]  # numbers of the enum
        num_buffers=len(chunks.data),
        num_items=values.num_values,
        has_large_chunk=large,
    )
    level_parts: list[EncodedChunks] = []
    for kind, part in (("rep_compression", levels.rep), ("def_compression", levels.definition)):
        if part is not None:
            as_values = levels_as_values(part)
            compression = choose_levels(as_values, num_levels, choice.version)
            level_parts.append(compression.encode_blocks(as_values, num_levels))
            getattr(layout, kind).CopyFrom(compression.to_pb())
    if not level_parts:
        num_levels = np.zeros(len(num_levels), np.int64)
    level_sizes = [part.sizes[0] for part in level_parts]
    if max((int(sizes.max(initial=0)) for sizes in (num_levels, *level_sizes)), default=0) > _MAX_U16:
        return None
    pieces = [(part.data[0], part.sizes[0], part.starts(0)) for part in level_parts]
    pieces += [(data, chunks.sizes[i], chunks.starts(i)) for i, data in enumerate(chunks.data)]
    header = _encode_headers(num_levels, level_sizes, list(chunks.sizes), large)
    body, sizes = _join_chunks(header, pieces)
    if not large and int(sizes.max(initial=0)) > _MAX_SMALL_CHUNK:
        return None
    buffers = [encode_words(sizes, chunks.num_values, large), body]
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
    return EncodedPage(pb.PageLayout(mini_block_layout=layout), tuple(buffers), length)


def _entry_ends(levels: EncodedLevels, num_values: Integers) -> Integers:
    """Return after which entry each chunk ends: with its last value; the last chunk takes all that are left."""
    if levels.definition is None or not levels.scheme.has_invisible:
        return np.cumsum(num_values)
    ends = np.empty(len(num_values), np.int64)
    kernels.end_entries(readable(levels.definition), levels.scheme.max_visible_def, readable(num_values), ends)
    ends[-1] = levels.num_entries
    return ends


def _encode_headers(num_levels: Integers, level_sizes: list[Integers], sizes: list[Integers], large: bool) -> Bytes:
    """Return one row for each chunk, padded."""
    width = 4 if large else 2
    num_words = 1 + len(level_sizes)
    num_bytes = 2 * num_words + width * len(sizes)
    headers = np.full((len(num_levels), _padded(num_bytes)), _PAD, np.uint8)
    words = np.stack([num_levels, *level_sizes], axis=1).astype("<u2")
    headers[:, : 2 * num_words] = words.view(np.uint8)
    if sizes:
        headers[:, 2 * num_words : num_bytes] = np.stack(sizes, axis=1).astype(f"<u{width}").view(np.uint8)
    return headers


def _join_chunks(headers: Bytes, pieces: list[tuple[Bytes, Integers, Integers]]) -> tuple[Bytes, Integers]:
    """Return all chunks end to end, every part padded, and the bytes of each; a piece is data, sizes and starts."""
    header_bytes = headers.shape[1]
    padded = [_padded(sizes) for _, sizes, _ in pieces]
    totals = np.full(len(headers), header_bytes, np.int64)
    for steps in padded:
        totals += steps
    chunk_starts = np.cumsum(totals) - totals
    out = np.empty(int(totals.sum()), np.uint8)
    words = out.view(np.uint64)
    at = chunk_starts
    words[at[:, None] // _ALIGNMENT + np.arange(header_bytes // _ALIGNMENT)] = headers.view(np.uint64)
    at = at + header_bytes
    for (data, sizes, starts), steps in zip(pieces, padded, strict=True):
        following = at + steps
        words[following[sizes < steps] // _ALIGNMENT - 1] = _PAD_WORD
        scatter_ranges(data, starts, sizes, out, at)
        at = following
    return out, totals


def _padded(size: Any) -> Any:
    return (size + _ALIGNMENT - 1) & -_ALIGNMENT


@dataclass(frozen=True, eq=False)
class _ChunkParts:
    """Where in the fetched bytes the parts of some chunks are."""

    num_levels: Integers
    rep: ChunkBuffers | None
    definition: ChunkBuffers | None
    values: ChunkBuffers


def _wanted_values(elements: Rows, index: ChunkIndex, chunks: Integers) -> Selection:
    """Return which of the chunks' values are wanted, where every value is a row."""
    if isinstance(elements, RowSlice):
        skipped = int(index.first_values[chunks[0]])
        return slice(elements.start - skipped, elements.stop - skipped)
    counts = index.first_values[chunks + 1] - index.first_values[chunks]
    shifts = index.first_values[chunks] - (np.cumsum(counts) - counts)
    chunk_of = np.searchsorted(index.first_values[chunks], elements.indices, side="right") - 1
    positions: Integers = elements.indices - shifts[chunk_of]
    return positions


def _take(values: Values, selection: Selection) -> Values:
    if isinstance(selection, slice):
        return values.slice(selection.start, selection.stop)
    return select(values, selection)


def _all_below(values: FixedWidth, validity: Bools | None, bound: int) -> bool:
    """Return whether every valid position is within bounds; those of nulls may be anything."""
    positions = values.as_integers()
    if not len(positions) or int(positions.max()) < bound:
        return True
    return validity is not None and int(positions[validity].max(initial=0)) < max(bound, 1)
