"""Full-zip: large values, each next to its levels.

    page buffers    entries | [repetition index]
    entry           [control word] | [length] | [value]
    control word    repetition << bits_def | definition, in 0, 1, 2 or 4 bytes

Every visible entry has a value of one width, null or not. A value of variable width, and its length, are there only if
the definition level is 0. The repetition index has the byte offset of every row and the end of the last row, in 1, 2,
4 or 8 bytes each. Pages whose rows are equally long (one width, no lists) have no index. A boolean takes a byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.ndarrays import Int64Array, Uint8Array, UnsignedArray
from lance_ops.encodings import (
    CorruptValues,
    FixedWidth,
    Values,
    VariableWidth,
    check,
    choose_zipped,
    encoding_from_pb,
    select,
)
from lance_ops.file.arrow_values import array_of, values_of, with_empty_slots
from lance_ops.file.container import EncodedPage
from lance_ops.file.page_reading import Ranges, RowSelection, RowSlice, SourceBytes, Steps
from lance_ops.file.v2_1.layouts.contract import (
    LeafRows,
    PageChoice,
    PageContext,
    PageLayout,
    ReadLayout,
    ToArray,
    check_entries,
    names_of,
    read_scheme,
)
from lance_ops.file.v2_1.layouts.zip_walk import read_words, walk_entries
from lance_ops.file.v2_1.levels import EncodedLevels, Entries
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["FullZipPage", "encode_full_zip"]


_INDEX_WIDTHS = (1, 2, 4, 8)
_MAX_VALUE_BYTES = 1 << 31


class FullZipPage(PageLayout):
    """A full-zip page."""

    MESSAGE: ClassVar[str] = "full_zip_layout"

    def __init__(self, message: pb.FullZipLayout, context: PageContext) -> None:
        self._context = context
        self._scheme = read_scheme(message.layers, context.leaf)
        self._values = encoding_from_pb(message.value_compression)
        self._bits_def = message.bits_def
        self._has_rep = message.bits_rep > 0
        self._word_bytes = _word_bytes(message.bits_rep + message.bits_def)
        check(message.bits_rep + message.bits_def <= 32, "control words of more than 32 bits")
        check(self._has_rep or not self._scheme.max_rep, "lists without repetition levels")
        details = message.WhichOneof("details")
        check(details is not None, "values with neither a width nor lengths")
        self._length_bytes = 0
        self._value_bytes = 0
        if details == "bits_per_value":
            check(message.bits_per_value % 8 == 0, f"values of {message.bits_per_value} bits")
            self._value_bytes = message.bits_per_value // 8
        else:
            check(message.bits_per_offset in (32, 64), f"lengths of {message.bits_per_offset} bits")
            self._length_bytes = message.bits_per_offset // 8
        self._is_uniform = not self._has_rep and not self._length_bytes
        data = context.buffer(0)
        if self._is_uniform:
            stride = self._word_bytes + self._value_bytes
            check(stride > 0 and context.length * stride <= data.size, f"{data.size} bytes for {context.length} values")
        else:
            index = context.buffer(1)
            self._index_width = index.size // (context.length + 1)
            fits = self._index_width in _INDEX_WIDTHS and index.size == self._index_width * (context.length + 1)
            check(fits, f"{index.size} bytes of repetition index for {context.length} rows")

    @classmethod
    def from_pb(cls, message: pb.FullZipLayout, context: PageContext, nested: ReadLayout) -> Self:
        return cls(message, context)

    def encodings(self) -> Sequence[str]:
        return ["full_zip", *names_of(self._values)]

    def read(self, rows: RowSelection) -> Steps[LeafRows]:
        elements = rows.scaled(self._context.leaf.elements_per_row)
        if self._is_uniform:
            return (yield from self._read_uniform(rows, elements))
        starts, stops = yield from self._read_index(elements)
        if isinstance(elements, RowSlice):
            fetched = yield Ranges(starts[:1], stops[-1:])
        else:
            fetched = yield Ranges(starts, stops)
        located = fetched.locate(starts)
        ends = located + (stops - starts)
        if self._has_rep:
            return self._decode_lists(rows, fetched, located, ends)
        return self._decode_variable(rows, fetched, located, ends)

    def _read_uniform(self, rows: RowSelection, elements: RowSelection) -> Steps[LeafRows]:
        base, stride = self._context.buffers[0].position, self._word_bytes + self._value_bytes
        if isinstance(elements, RowSlice):
            starts = base + np.arange(elements.start, elements.stop, dtype=np.int64) * stride
            fetched = yield Ranges(starts[:1], starts[-1:] + stride)
        else:
            starts = base + elements.indices * stride
            fetched = yield Ranges(starts, starts + stride)
        located = fetched.locate(starts)
        words = read_words(fetched.data, located, self._word_bytes)
        sizes = np.full(len(located), self._value_bytes, np.int64)
        values = self._values.decode_zipped(fetched.data, located + self._word_bytes, sizes)
        entries = self._entries(words, len(located))
        check_entries(self._scheme, entries)
        return self._context.finish(rows.count, self._scheme, entries, self._to_array(values))

    def _read_index(self, elements: RowSelection) -> Steps[tuple[Int64Array, Int64Array]]:
        """Return where in the file each wanted row starts and ends."""
        index, data, width = self._context.buffers[1], self._context.buffers[0], self._index_width
        if isinstance(elements, RowSlice):
            start, stop = index.position + elements.start * width, index.position + (elements.stop + 1) * width
            fetched = yield Ranges.of((start, stop))
            offsets = _unsigned(fetched.view(start, stop).view(f"<u{width}"), data.size)
            starts, stops = offsets[:-1], offsets[1:]
        else:
            positions = index.position + elements.indices * width
            fetched = yield Ranges(positions, positions + 2 * width)
            located = fetched.locate(positions)
            pairs = fetched.data[located[:, None] + np.arange(2 * width)].view(f"<u{width}")
            offsets = _unsigned(pairs.reshape(-1), data.size).reshape(-1, 2)
            starts, stops = offsets[:, 0], offsets[:, 1]
        check((starts <= stops).all(), "a repetition index that does not ascend")
        return starts + data.position, stops + data.position

    def _decode_variable(
        self, rows: RowSelection, fetched: SourceBytes, starts: Int64Array, ends: Int64Array
    ) -> LeafRows:
        """Decode rows of one entry each, with values of variable width."""
        words = read_words(fetched.data, starts, self._word_bytes, ends)
        entries = self._entries(words, len(starts))
        check_entries(self._scheme, entries)
        starts = starts + self._word_bytes
        present = None if entries.definition is None else entries.definition == 0
        if present is not None:
            starts, ends = starts[present], ends[present]
        lengths = read_words(fetched.data, starts, self._length_bytes, ends)
        starts = starts + self._length_bytes
        sizes = _unsigned(lengths, _MAX_VALUE_BYTES) if lengths is not None else ends - starts
        check((sizes == ends - starts).all(), "a value that does not fill its row")
        values = self._values.decode_zipped(fetched.data, starts, sizes)
        if present is not None:
            values = with_empty_slots(values, present)
        return self._context.finish(rows.count, self._scheme, entries, self._to_array(values))

    def _decode_lists(self, rows: RowSelection, fetched: SourceBytes, starts: Int64Array, ends: Int64Array) -> LeafRows:
        words, value_starts, sizes = walk_entries(
            fetched.data,
            starts,
            ends,
            word_bytes=self._word_bytes,
            bits_def=self._bits_def,
            max_visible_def=self._scheme.max_visible_def,
            value_bytes=self._value_bytes,
            length_bytes=self._length_bytes,
        )
        entries = self._entries(words, len(words))
        check_entries(self._scheme, entries)
        assert entries.rep is not None
        num_rows = int(np.count_nonzero(entries.rep == self._scheme.max_rep))
        check(num_rows == len(starts), f"{num_rows} rows begin where the index has {len(starts)}")
        values = self._values.decode_zipped(fetched.data, value_starts, sizes)
        if self._length_bytes and entries.definition is not None:
            visible = entries.definition[entries.definition <= self._scheme.max_visible_def]
            values = with_empty_slots(values, visible == 0)
        return self._context.finish(rows.count, self._scheme, entries, self._to_array(values))

    def _to_array(self, values: Values) -> ToArray:
        if pt.is_boolean(self._context.leaf.arrow_type):
            values = _flags_of_bytes(values)
        return self._context.to_array(values)

    def _entries(self, words: UnsignedArray | None, count: int) -> Entries:
        if words is None:
            return Entries(count)
        rep = (words >> self._bits_def).astype(np.uint16) if self._has_rep else None
        definition = (words & ((1 << self._bits_def) - 1)).astype(np.uint16) if self._bits_def else None
        return Entries(count, rep, definition)


def encode_full_zip(values: Values, levels: EncodedLevels, choice: PageChoice) -> EncodedPage:
    """Return a full-zip page of the visible values."""
    if isinstance(values, FixedWidth) and values.bits_per_value == 1:
        values = _bytes_of_flags(values)
    bits_rep, bits_def = levels.scheme.max_rep.bit_length(), levels.scheme.max_def.bit_length()
    encoding = choose_zipped(values, choice.options, choice.version)
    layout = pb.FullZipLayout(
        bits_rep=bits_rep,
        bits_def=bits_def,
        num_items=levels.num_entries,
        num_visible_items=values.num_values,
        value_compression=encoding.to_pb(),
        layers=levels.scheme.kinds,  # type: ignore[arg-type]  # numbers of the enum
    )
    zipped = encoding.encode_zipped(values)
    words = _control_words(levels, bits_def, _word_bytes(bits_rep + bits_def))
    if isinstance(zipped, FixedWidth):
        layout.bits_per_value = zipped.bits_per_value
        data, starts = _zip_fixed(zipped, words, levels)
    else:
        layout.bits_per_offset = zipped.bits_per_offset
        data, starts = _zip_variable(zipped, words, levels)
    buffers = [data]
    length = levels.num_entries
    if levels.rep is not None:
        starts = np.append(starts[:-1][levels.rep == levels.scheme.max_rep], starts[-1])
        length = levels.num_rows
    if levels.rep is not None or not isinstance(zipped, FixedWidth):
        width = next(width for width in _INDEX_WIDTHS if len(data) < 1 << (8 * width))
        buffers.append(starts.astype(f"<u{width}").view(np.uint8))
    return EncodedPage(pb.PageLayout(full_zip_layout=layout), tuple(buffers), length)


def _control_words(levels: EncodedLevels, bits_def: int, width: int) -> Uint8Array:
    """Return the control words as bytes, one row for each entry."""
    if not width:
        return np.empty((levels.num_entries, 0), np.uint8)
    words = np.zeros(levels.num_entries, np.dtype("<u4"))
    if levels.rep is not None:
        words |= levels.rep.astype(np.uint32) << np.uint32(bits_def)
    if levels.definition is not None:
        words |= levels.definition
    return words.astype(f"<u{width}").view(np.uint8).reshape(-1, width)


def _zip_fixed(values: FixedWidth, words: Uint8Array, levels: EncodedLevels) -> tuple[Uint8Array, Int64Array]:
    """Put each visible entry's value after its control word; return the bytes and where entries start and end."""
    width = values.bits_per_value // 8
    rows = values.data[: values.size_bytes].reshape(values.num_values, width)
    visible = levels.visible()
    if visible is None:
        starts = np.arange(levels.num_entries + 1, dtype=np.int64) * (words.shape[1] + width)
        return rows.reshape(-1) if not words.shape[1] else np.concatenate([words, rows], axis=1).reshape(-1), starts
    offsets = np.append(0, np.cumsum(visible, dtype=np.int64)) * width
    return _join(words, VariableWidth(offsets, rows.reshape(-1)))


def _zip_variable(values: VariableWidth, words: Uint8Array, levels: EncodedLevels) -> tuple[Uint8Array, Int64Array]:
    """Put length and value after the control words of entries that are not null; return as `_zip_fixed` does."""
    lengths = values.offsets.astype(np.int64)[1:] - values.offsets[:-1]
    raw = lengths.astype(f"<u{values.bits_per_offset // 8}").view(np.uint8).reshape(values.num_values, -1)
    if levels.definition is None:
        return _join(np.concatenate([words, raw], axis=1), values)
    # A null has neither bytes nor a length, but `values` has a slot for each visible null.
    visible = levels.definition <= levels.scheme.max_visible_def
    is_value = levels.definition == 0
    slots_with_value = is_value[visible]
    kept = select(values, np.flatnonzero(slots_with_value))
    assert isinstance(kept, VariableWidth)
    offsets = kept.offsets.astype(np.int64)[np.append(0, np.cumsum(is_value, dtype=np.int64))]
    heads = np.zeros((levels.num_entries, words.shape[1] + raw.shape[1]), np.uint8)
    heads[:, : words.shape[1]] = words
    heads[is_value, words.shape[1] :] = raw[slots_with_value]
    head_sizes = words.shape[1] + is_value * raw.shape[1]
    used = np.arange(heads.shape[1]) < head_sizes[:, None]
    head_offsets = np.append(0, np.cumsum(head_sizes, dtype=np.int64))
    return _join(VariableWidth(head_offsets, heads[used]), VariableWidth(offsets, kept.data))


def _join(heads: Uint8Array | VariableWidth, values: VariableWidth) -> tuple[Uint8Array, Int64Array]:
    """Put each value after its head; return the bytes and where the pairs start and end."""
    if not isinstance(heads, VariableWidth):
        offsets = np.arange(len(heads) + 1, dtype=np.int64) * heads.shape[1]
        heads = VariableWidth(offsets, np.ascontiguousarray(heads).reshape(-1))
    wide = pa.large_binary()
    empty = pa.scalar(b"", wide)
    pairs = values_of(pc.binary_join_element_wise(array_of(heads, wide), array_of(values, wide), empty))
    assert isinstance(pairs, VariableWidth)
    return pairs.data, pairs.offsets.astype(np.int64)


def _bytes_of_flags(values: FixedWidth) -> FixedWidth:
    """Return booleans as a byte each, as entries store them."""
    return FixedWidth(np.unpackbits(values.data, count=values.num_values, bitorder="little"), 8, values.num_values)


def _flags_of_bytes(values: Values) -> FixedWidth:
    if not isinstance(values, FixedWidth) or values.bits_per_value != 8:
        raise CorruptValues("booleans that are not a byte each")
    return FixedWidth(np.packbits(values.data[: values.num_values], bitorder="little"), 1, values.num_values)


def _word_bytes(bits: int) -> int:
    return 0 if bits == 0 else 1 if bits <= 8 else 2 if bits <= 16 else 4


def _unsigned(numbers: UnsignedArray, bound: int) -> Int64Array:
    check(int(numbers.max(initial=0)) <= bound, "an offset or length beyond the page")
    return numbers.astype(np.int64)
