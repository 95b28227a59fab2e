"""Mini-block: small values in chunks of a few KiB, each compressed on its own.

    page buffers    chunk words | chunks | [dictionary] | [repetition index]

`chunk_index` describes words and repetition index, `chunk_format` the chunks. Levels count entries; chunk words
count values. With a dictionary the values are positions in it: u32, or as wide as the keys if the column is a
dictionary in Arrow.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops import kernels
from lance_ops.core.arrow import new_bytes
from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint16Array
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.encodings import (
    EncodedChunks,
    Encoding,
    FixedStatistics,
    FixedWidth,
    Values,
    check,
    choose_block,
    choose_levels,
    choose_limits,
    choose_mini_block,
)
from lance_ops.file.arrow_values import array_of, copy_array
from lance_ops.file.container import EncodedPage
from lance_ops.file.page_reading import Extent, Ranges, RowSelection, RowSet, RowSlice, SourceBytes, Steps
from lance_ops.file.v2_1.layouts.chunk_index import COUNT_BITS, ChunkIndex, RowIndex, encode_row_index, encode_words
from lance_ops.file.v2_1.layouts.chunk_reading import read_chunks
from lance_ops.file.v2_1.layouts.contract import (
    LeafRows,
    PageChoice,
    PageContext,
    PageLayout,
    ReadLayout,
    ToArray,
    levels_as_values,
    names_of,
)
from lance_ops.file.v2_1.layouts.mini_block_description import MiniBlockDescription, describe_mini_block
from lance_ops.file.v2_1.layouts.page_dictionaries import replace_positions
from lance_ops.file.v2_1.levels import EncodedLevels, LevelScheme
from lance_ops.kernels import read_only
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["MiniBlockPage", "encode_equal_mini_blocks", "encode_mini_block"]


_ALIGNMENT = 8
_MAX_U16 = (1 << 16) - 1


@dataclass(frozen=True, eq=False)
class _Index:
    """What is read before any chunk: the chunk index and the dictionary."""

    chunks: ChunkIndex
    dictionary: pa.Array | None


class MiniBlockPage(PageLayout):
    """A mini-block page; it keeps its index and dictionary once they are loaded."""

    MESSAGE: ClassVar[str] = "mini_block_layout"

    def __init__(self, described: MiniBlockDescription, context: PageContext) -> None:
        self._context = context
        self._described = described
        self._format = described.format
        self._index: _Index | None = None
        self._group_chunks: tuple[tuple[MiniBlockPage, ...], ChunkIndex] | None = None
        """The last group that this page was the first of, and the chunks of all its pages."""
        if described.format.rep is None:
            num_items = described.num_items
            check(num_items == context.length, f"{num_items} values in a page of {context.length} rows")
        context.buffer(described.num_buffers - 1)  # the last one, so all before it exist too

    @classmethod
    def from_pb(cls, message: pb.MiniBlockLayout, context: PageContext, nested: ReadLayout) -> Self:
        return cls(describe_mini_block(message, context.leaf), context)

    @property
    def context(self) -> PageContext:
        """What the description does not say."""
        return self._context

    @property
    def described(self) -> MiniBlockDescription:
        """The description."""
        return self._described

    def encodings(self) -> Sequence[str]:
        named = names_of(self._format.values)
        if self._described.dictionary is not None:
            named = ["dictionary", *named, *(f"dictionary:{name}" for name in names_of(self._described.dictionary))]
        for kind, encoding in (("rep", self._format.rep), ("def", self._format.definition)):
            if encoding is not None:
                named += [f"{kind}:{name}" for name in names_of(encoding)]
        return ["mini_block", *named]

    @property
    def decode_key(self) -> Hashable | None:
        # Each page has a dictionary of its own, so positions of two pages cannot be mixed.
        return None if self._described.dictionary is not None else self._format

    @property
    def read_key(self) -> Hashable | None:
        if self._described.dictionary is None:
            return self._format.read_key
        # Without lists, the number of values of each page is known, and so is which dictionary they refer to.
        return None if self._format.rep is not None else ("dictionary", self._format.read_key)

    def read(self, rows: RowSelection) -> Steps[LeafRows]:
        return (yield from self.read_group([self], [rows]))

    @classmethod
    def read_group(
        cls, pages: Sequence[Self], rows: Sequence[RowSelection], file_starts: Sequence[int] = ()
    ) -> Steps[LeafRows]:
        head = pages[0]
        elements = [part.scaled(head._context.leaf.elements_per_row) for part in rows]
        whole = all(
            isinstance(part, RowSlice) and part.count == page._context.length
            for part, page in zip(elements, pages, strict=True)
        )
        starts = file_starts or [0] * len(pages)
        missing = [(page, start) for page, start in zip(pages, starts, strict=True) if page._index is None]
        fetched: SourceBytes | None = None
        if missing:
            extents = [(start, extent) for page, start in missing for extent in page._extents(with_chunks=whole)]
            fetched = yield Ranges.of(*((start + extent.position, start + extent.end) for start, extent in extents))
            cls._load(missing, fetched)
        index = head._merge_chunks(pages, file_starts)
        wanted = _merge_rows(elements, [page._context.length for page in pages])
        num_rows = sum(part.count for part in rows)
        fetched_all = fetched if len(missing) == len(pages) else None
        ends = _chunk_ends_by_encoding(pages) if len(pages) > 1 else ()
        entries, values = yield from read_chunks(head._format, wanted, index, fetched_all, ends, whole=whole)
        to_array = cls._to_array(pages, values, [part.count for part in elements])
        return head._context.finish(num_rows, head._format.scheme, entries, to_array)

    def _extents(self, *, with_chunks: bool) -> Sequence[Extent]:
        buffers = self._context.buffers
        return buffers if with_chunks else (buffers[0], *buffers[2:])

    def _merge_chunks(self, pages: Sequence[MiniBlockPage], file_starts: Sequence[int]) -> ChunkIndex:
        """Return the chunks of all these pages, of which this one is the first, as those of one page.

        The result is kept for the next read of the same group, unless the pages come from several files.
        """
        indexes = [page._index.chunks for page in pages if page._index is not None]
        if file_starts:
            return ChunkIndex.concat(indexes, file_starts)
        if len(pages) == 1:
            return indexes[0]
        if self._group_chunks is None or self._group_chunks[0] != tuple(pages):
            self._group_chunks = tuple(pages), ChunkIndex.concat(indexes)
        return self._group_chunks[1]

    @staticmethod
    def _load(missing: Sequence[tuple[MiniBlockPage, int]], fetched: SourceBytes) -> None:
        """Decode the index and dictionary of pages, each with the position at which its file begins in `fetched`."""
        words, counts, chunks_at = [], [], []
        for page, file_start in missing:
            extent, chunks = page._context.buffers[:2]
            width = 4 if page._format.large else 2
            check(extent.size % width == 0, f"{extent.size} bytes of {width}-byte chunk words")
            words.append(fetched.view(file_start + extent.position, file_start + extent.end).view(f"<u{width}"))
            counts.append(page._described.num_items)
            chunks_at.append(chunks)
        indexes = ChunkIndex.decode_pages(words, counts, chunks_at)
        for (page, file_start), index in zip(missing, indexes, strict=True):
            page._index = _Index(
                page._with_rows(index, fetched, file_start), page._read_dictionary(fetched, file_start)
            )

    def _with_rows(self, chunks: ChunkIndex, fetched: SourceBytes, file_start: int) -> ChunkIndex:
        if self._format.rep is None:
            return chunks
        extent = self._context.buffers[2 + (self._described.dictionary is not None)]
        data = fetched.view(file_start + extent.position, file_start + extent.end)
        rows = RowIndex.decode(data, chunks.num_chunks, self._described.index_depth, self._context.length)
        return replace(chunks, rows=rows)

    def _read_dictionary(self, fetched: SourceBytes, file_start: int) -> pa.Array | None:
        encoding, num_items = self._described.dictionary, self._described.num_dictionary_items
        if encoding is None:
            return None
        extent = self._context.buffers[2]
        data = fetched.view(file_start + extent.position, file_start + extent.end)
        value_type = self._context.leaf.arrow_type
        if pt.is_dictionary(value_type):
            value_type = value_type.value_type
        items = encoding.decode_block(data, num_items)
        check(items.num_values == num_items, "a dictionary of another length than stated")
        # A copy: the open file keeps it, and must not keep the file's map with it.
        return copy_array(array_of(items, value_type))

    @staticmethod
    def _to_array(pages: Sequence[MiniBlockPage], values: Values, counts: Sequence[int]) -> ToArray:
        """Return what makes the array of values, `counts[i]` of which come from page `i`."""
        context = pages[0]._context
        dictionaries = [page._index.dictionary for page in pages if page._index and page._index.dictionary is not None]
        if not dictionaries:
            return context.to_array(values)
        stored_bytes = sum(extent.size for page in pages for extent in page._context.buffers)
        return replace_positions(values, dictionaries, counts, context.leaf.arrow_type, stored_bytes)


def encode_mini_block(
    values: Values,
    levels: EncodedLevels,
    choice: PageChoice,
    dictionary: Values | None = None,
    statistics: FixedStatistics | None = None,
) -> EncodedPage | None:
    """Return a page of the visible values, which are positions if there is a dictionary.

    `statistics` are those of the values, if the caller has them. Returns None if the values do not fit a mini-block
    page: a chunk would have too many levels or bytes for its header or word.
    """
    encoding = choose_mini_block(values, choice.options, choice.version, statistics)
    chunks = encoding.encode_chunks(values, choose_limits(values, choice.options, choice.version))
    has_levels = levels.rep is not None or levels.definition is not None
    entry_ends = _entry_ends(levels, chunks.num_values) if has_levels else np.zeros(chunks.num_chunks, np.int64)
    num_levels = np.diff(entry_ends, prepend=0) if has_levels else entry_ends
    large = choice.large_chunks
    description = pb.PageLayout()
    layout = description.mini_block_layout
    layout.value_compression.CopyFrom(encoding.to_pb())
    layout.layers.extend(levels.scheme.kinds)  # type: ignore[arg-type]  # numbers of the enum
    layout.num_buffers, layout.num_items, layout.has_large_chunk = len(chunks.data), values.num_values, large
    level_parts = _encode_levels(levels, num_levels, choice.version, layout)
    header_numbers = (num_levels, *(part.sizes[0] for part in level_parts)) if has_levels else ()
    if any(int(numbers.max(initial=0)) > _MAX_U16 for numbers in header_numbers):
        return None
    words, body = _write_chunks(num_levels, level_parts, chunks, large)
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
        buffers.append(encode_row_index(levels.rep, levels.scheme.max_rep, entry_ends))
        length = levels.num_rows
    return EncodedPage(description, tuple(buffers), length)


def encode_equal_mini_blocks(
    values: FixedWidth,
    num_pages: int,
    encoding: Encoding,
    scheme: LevelScheme,
    choice: PageChoice,
    definition: tuple[Encoding, Uint16Array] | None,
) -> tuple[pb.PageLayout, Sequence[tuple[Uint8Array, Int64Array]]]:
    """Encode equally many values for each page, all of them in one chunk; return the pages' description.

    `definition` has the encoding and the definition levels of all values, if some are null. Also returns the pages'
    chunk words and then their chunks, each end to end, with the size of each in bytes.
    """
    num_values, large = values.num_values // num_pages, choice.large_chunks
    chunks = encoding.encode_blocks(values, np.full(num_pages, num_values, np.int64))
    counts, levels = np.zeros(num_pages, np.int64), []
    if definition is not None:
        counts += num_values
        levels.append(definition[0].encode_blocks(levels_as_values(definition[1]), counts))
    words, body = _write_chunks(counts, levels, chunks, large)
    words &= -(1 << COUNT_BITS)  # each chunk is the last of its page
    description = pb.PageLayout()
    layout = description.mini_block_layout
    if definition is not None:
        layout.def_compression.CopyFrom(definition[0].to_pb())
    layout.value_compression.CopyFrom(encoding.to_pb())
    layout.layers.extend(scheme.kinds)  # type: ignore[arg-type]  # numbers of the enum
    layout.num_buffers, layout.num_items, layout.has_large_chunk = len(chunks.data), num_values, large
    sizes = ((words >> COUNT_BITS) + 1) * _ALIGNMENT
    return description, [(encode_words(words, large), np.full(num_pages, 4 if large else 2)), (body, sizes)]


def _encode_levels(
    levels: EncodedLevels, num_levels: Int64Array, version: FileVersion, layout: pb.MiniBlockLayout
) -> list[EncodedChunks]:
    """Return repetition and definition levels, as far as there are any, in chunks; describe them in `layout`."""
    parts: list[EncodedChunks] = []
    for kind, numbers in (("rep_compression", levels.rep), ("def_compression", levels.definition)):
        if numbers is not None:
            values = levels_as_values(numbers)
            compression = choose_levels(values, num_levels, version)
            parts.append(compression.encode_blocks(values, num_levels))
            getattr(layout, kind).CopyFrom(compression.to_pb())
    return parts


def _entry_ends(levels: EncodedLevels, num_values: Int64Array) -> Int64Array:
    """Return the entry after which each chunk ends: that of its last value; the last chunk takes all other entries."""
    if levels.definition is None or not levels.scheme.has_invisible:
        return np.cumsum(num_values)
    ends = np.empty(len(num_values), np.int64)
    kernels.end_chunks(read_only(levels.definition), levels.scheme.max_visible_def, read_only(num_values), ends)
    ends[-1] = levels.num_entries
    return ends


def _write_chunks(
    num_levels: Int64Array, level_parts: Sequence[EncodedChunks], chunks: EncodedChunks, large: bool
) -> tuple[Int64Array, Uint8Array]:
    """Return the word of each chunk, and the chunks end to end: headers, levels and values, every part padded."""
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


def _merge_rows(parts: Sequence[RowSelection], lengths: Sequence[int]) -> RowSelection:
    """Return rows of several pages, counted from the first page on; `lengths` are those of the pages.

    Slices must follow each other without a gap.
    """
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return first
    bases = np.cumsum(lengths) - lengths
    if isinstance(first, RowSlice) and isinstance(last, RowSlice):
        return RowSlice(first.start, int(bases[-1]) + last.stop)
    return RowSet(np.concatenate([part.indices + base for part, base in zip(parts, bases, strict=True)]))


def _chunk_ends_by_encoding(pages: Sequence[MiniBlockPage]) -> Sequence[tuple[Encoding, int]]:
    """Return each page's value encoding and the number of chunks up to its end; nothing if all encodings are equal."""
    encodings = [page._format.values for page in pages]
    if encodings.count(encodings[0]) == len(encodings):
        return ()
    counts = [page._index.chunks.num_chunks for page in pages if page._index is not None]
    return list(zip(encodings, accumulate(counts), strict=True))
