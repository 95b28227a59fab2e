"""Constant: all visible values are equal, or all are null.

    page buffers    none | value | repetition, definition levels | value, repetition levels, definition levels
    value buffer    u32 num_buffers | u32 size of each | the buffers: one of a fixed-width value; of a variable-width
                    one, its offsets [0, size], as wide as the column's, and its bytes

A fixed-width value of at most 32 bytes is in the description instead of a buffer. Levels are u16 numbers, or
compressed as the description says; a kind of levels that the page does not need has an empty buffer. Without a value
and without buffers, everything is null.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from itertools import accumulate, pairwise
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops import encodings
from lance_ops.core.arrow import is_text_or_bytes
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array, Uint16Array
from lance_ops.core.records import dataclass
from lance_ops.encodings import Encoding, FixedWidth, Values, VariableWidth, check, check_expansion
from lance_ops.file.arrow_values import array_of, bits_per_value_of
from lance_ops.file.container import EncodedPage
from lance_ops.file.page_reading import Ranges, RowSelection, RowSlice, SourceBytes, Steps
from lance_ops.file.v2_1.layouts.contract import (
    LeafRows,
    PageChoice,
    PageContext,
    PageLayout,
    ReadLayout,
    check_entries,
    levels_of,
    names_of,
    read_scheme,
)
from lance_ops.file.v2_1.levels import EncodedLevels, Entries
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["ConstantPage", "encode_constant"]


_MAX_VALUE_BUFFERS = 2
_MAX_INLINE_BYTES = 32
_MAX_KEPT_BYTES = 4096
_COUNT = struct.Struct("<I")


@dataclass(frozen=True, eq=False)
class _Content:
    """The bytes of the page's value, and its levels, if it stores any.

    With lists, `row_starts` has the first entry of every row and the end of the last row.
    """

    value: bytes | None
    entries: Entries | None
    row_starts: Int64Array | None


class ConstantPage(PageLayout):
    """A page of one value, or of nulls; it keeps value and levels once they are loaded, unless the value is long."""

    MESSAGE: ClassVar[str] = "constant_layout"

    def __init__(self, message: pb.ConstantLayout, context: PageContext) -> None:
        self._context = context
        self._scheme = read_scheme(message.layers, context.leaf)
        self._inline = message.inline_value if message.HasField("inline_value") else None
        self._rep = encodings.encoding_from_pb(message.rep_compression) if message.HasField("rep_compression") else None
        self._def = encodings.encoding_from_pb(message.def_compression) if message.HasField("def_compression") else None
        self._num_rep, self._num_def = message.num_rep_values, message.num_def_values
        num_buffers = len(context.buffers)
        self._has_value_buffer = self._inline is None and num_buffers in (1, 3)
        num_level_buffers = num_buffers - self._has_value_buffer
        check(num_level_buffers in (0, 2), f"{num_buffers} buffers")
        self._level_buffers = context.buffers[num_buffers - num_level_buffers :]
        self._content: _Content | None = None

    @classmethod
    def from_pb(cls, message: pb.ConstantLayout, context: PageContext, nested: ReadLayout) -> Self:
        return cls(message, context)

    def encodings(self) -> Sequence[str]:
        named = ["constant"]
        if self._inline is not None:
            named.append("inline")
        elif self._has_value_buffer:
            named.append("value")
        for kind, encoding in (("rep", self._rep), ("def", self._def)):
            if encoding is not None:
                named += [f"{kind}:{name}" for name in names_of(encoding)]
        return named

    @property
    def decode_key(self) -> Hashable | None:
        # In a page with levels each row has to be searched for, so such pages are decoded one by one.
        return None if self._level_buffers else (self._scheme, self._value_is_absent)

    def read(self, rows: RowSelection) -> Steps[LeafRows]:
        return (yield from self.read_group([self], [rows]))

    @classmethod
    def read_group(
        cls, pages: Sequence[Self], rows: Sequence[RowSelection], file_starts: Sequence[int] = ()
    ) -> Steps[LeafRows]:
        head = pages[0]
        loaded = [page._content for page in pages]
        missing = [at for at, content in enumerate(loaded) if content is None]
        if missing:
            starts = file_starts or [0] * len(pages)
            extents = [(starts[at], extent) for at in missing for extent in pages[at]._context.buffers]
            fetched = yield Ranges.of(*((start + extent.position, start + extent.end) for start, extent in extents))
            for at in missing:
                loaded[at] = pages[at]._load(fetched, starts[at])
        contents = [content for content in loaded if content is not None]
        num_rows, each = sum([part.count for part in rows]), head._context.leaf.elements_per_row
        if contents[0].entries is None:
            counts = [part.count * each for part in rows]
            entries = head._without_levels(num_rows * each)
        else:
            entries = _entries_of(rows[0].scaled(each), contents[0].entries, contents[0].row_starts)
            counts = [entries.count]
            if entries.definition is not None and head._scheme.has_invisible:
                counts = [int(np.count_nonzero(entries.definition <= head._scheme.max_visible_def))]
        values = [content.value for content in contents if content.value is not None]

        def to_array(validity: BoolArray | None) -> pa.Array:
            if not values:
                return head._without_value(sum(counts), entries)
            return array_of(_repeat(values, counts, head._value_type), head._context.leaf.arrow_type, validity)

        return head._context.finish(num_rows, head._scheme, entries, to_array)

    def _without_value(self, count: int, entries: Entries) -> pa.Array:
        leaf_type = self._context.leaf.arrow_type
        if pt.is_struct(leaf_type) and not leaf_type.num_fields:
            return pa.Array.from_buffers(
                leaf_type, count, [None]
            )  # such structs are written as nulls, and read as structs
        all_null = entries.definition is not None and entries.definition.min(initial=1) > 0
        check(count == 0 or all_null, "values in a page that has no value")
        return pa.nulls(count, leaf_type)

    def _without_levels(self, count: int) -> Entries:
        """Return `count` entries of a page that stores no levels."""
        definition = None
        if self._value_is_absent and self._scheme.max_def:
            check(self._scheme.max_def == 1 and not self._scheme.max_rep, "no levels to tell nulls apart")
            definition = np.broadcast_to(np.uint16(1), count)
        check(not self._scheme.max_rep, "lists without repetition levels")
        return Entries(count, None, definition)

    def _load(self, fetched: SourceBytes, file_start: int) -> _Content:
        """Decode the page, and keep the result unless its value is long.

        `file_start` is where the page's file begins in what was fetched.
        """
        content = self._decode(fetched, file_start)
        if content.value is None or len(content.value) <= _MAX_KEPT_BYTES:
            self._content = content
        return content

    def _decode(self, fetched: SourceBytes, file_start: int) -> _Content:
        if not self._level_buffers:
            return _Content(self._value(fetched, file_start), None, None)
        rep_at, definition_at = self._level_buffers
        rep = _levels(fetched.view(file_start + rep_at.position, file_start + rep_at.end), self._rep, self._num_rep)
        definition = _levels(
            fetched.view(file_start + definition_at.position, file_start + definition_at.end), self._def, self._num_def
        )
        check(rep is not None or not self._scheme.max_rep, "lists without repetition levels")
        levels = definition if rep is None else rep
        count = self._context.length if levels is None else len(levels)
        entries = Entries(count, rep, definition)
        check_entries(self._scheme, entries)
        row_starts = None
        num_rows = count
        if rep is not None:
            row_starts = np.append(np.flatnonzero(rep == self._scheme.max_rep), count)
            num_rows = len(row_starts) - 1
        check(num_rows == self._context.length, f"levels of {num_rows} rows in a page of {self._context.length}")
        return _Content(self._value(fetched, file_start), entries, row_starts)

    @property
    def _value_is_absent(self) -> bool:
        return self._inline is None and not self._has_value_buffer

    @property
    def _value_type(self) -> pa.DataType:
        leaf_type = self._context.leaf.arrow_type
        return leaf_type.value_type if pt.is_dictionary(leaf_type) else leaf_type

    def _value(self, fetched: SourceBytes, file_start: int) -> bytes | None:
        """Return the value's bytes as a copy, so that keeping them does not keep all that was fetched."""
        value_type = self._value_type
        if self._inline is not None:
            return _fixed(self._inline, value_type)
        if not self._has_value_buffer:
            return None
        extent = self._context.buffers[0]
        parts = _split(fetched.view(file_start + extent.position, file_start + extent.end).data)
        if is_text_or_bytes(value_type):
            check(len(parts) == 2 and len(parts[0]) in (8, 16), "not the two buffers of a variable-width value")
            offsets = struct.unpack("<II" if len(parts[0]) == 8 else "<QQ", parts[0])
            check(offsets == (0, len(parts[1])), "a value of another length than stated")
            return bytes(parts[1])
        check(len(parts) == 1, f"{len(parts)} buffers of a fixed-width value")
        return _fixed(bytes(parts[0]), value_type)


def encode_constant(value: FixedWidth | VariableWidth | None, levels: EncodedLevels, choice: PageChoice) -> EncodedPage:
    """Return a page whose visible values are all `value`, or, with None, all null."""
    description = pb.PageLayout()
    layout = description.constant_layout
    layout.layers.extend(levels.scheme.kinds)  # type: ignore[arg-type]  # numbers of the enum
    buffers: list[Uint8Array] = []
    if isinstance(value, FixedWidth) and len(value.data) <= _MAX_INLINE_BYTES:
        layout.inline_value = value.data.tobytes()
    elif value is not None:
        buffers.append(_join(value))
    length = levels.num_entries if levels.rep is None else levels.num_rows
    has_one_null_kind = value is None and levels.scheme.kinds == (pb.REPDEF_NULLABLE_ITEM,)
    if (levels.rep is not None or levels.definition is not None) and not has_one_null_kind:
        buffers += [_raw(levels.rep), _raw(levels.definition)]
    return EncodedPage(description, tuple(buffers), length)


def _raw(levels: Uint16Array | None) -> Uint8Array:
    return np.empty(0, np.uint8) if levels is None else np.ascontiguousarray(levels, "<u2").view(np.uint8)


def _join(value: FixedWidth | VariableWidth) -> Uint8Array:
    """Return the value buffer of a value."""
    parts = [value.data[: value.size_bytes].tobytes()]
    if isinstance(value, VariableWidth):
        parts.insert(0, struct.pack("<II" if value.bits_per_offset == 32 else "<QQ", 0, value.size_bytes))
    sizes = struct.pack(f"<I{len(parts)}I", len(parts), *map(len, parts))
    return np.frombuffer(b"".join([sizes, *parts]), np.uint8)


def _entries_of(rows: RowSelection, entries: Entries, starts: Int64Array | None) -> Entries:
    """Return the entries of these rows; with lists, `starts` has the first entry of every row, and the end."""
    if isinstance(rows, RowSlice):
        if starts is None:
            return entries.take(slice(rows.start, rows.stop))
        return entries.take(slice(int(starts[rows.start]), int(starts[rows.stop])))
    if starts is None:
        return entries.take(rows.indices)
    counts = starts[rows.indices + 1] - starts[rows.indices]
    ends = np.cumsum(counts)
    return entries.take(np.repeat(starts[rows.indices] - (ends - counts), counts) + np.arange(int(ends[-1])))


def _levels(data: Uint8Array, encoding: Encoding | None, num_levels: int) -> Uint16Array | None:
    if not len(data):
        return None
    if encoding is not None:
        levels = levels_of(encoding.decode_block(data, num_levels))
        check(len(levels) == num_levels, "another number of levels than stated")
        return levels
    check(len(data) % 2 == 0, f"{len(data)} bytes of u16 levels")
    return data.view("<u2")


def _fixed(value: bytes, value_type: pa.DataType) -> bytes:
    bits = bits_per_value_of(value_type)
    check(len(value) == -(-bits // 8), f"a value of {len(value)} bytes in a column of {value_type}")
    return value


def _split(data: memoryview) -> list[memoryview]:
    """Split a value buffer into the buffers that it holds."""
    check(len(data) >= 4, "a value buffer without a count")
    (count,) = _COUNT.unpack_from(data)
    check(
        count <= _MAX_VALUE_BUFFERS and len(data) >= 4 + 4 * count, f"{count} buffers in a value of {len(data)} bytes"
    )
    sizes = struct.unpack_from(f"<{count}I", data, 4)
    bounds = list(accumulate(sizes, initial=4 + 4 * count))
    check(bounds[-1] <= len(data), "a value's buffers are longer than the value")
    return [data[start:stop] for start, stop in pairwise(bounds)]


def _repeat(values: Sequence[bytes], counts: Sequence[int], value_type: pa.DataType) -> Values:
    """Return `counts[i]` copies of each value `values[i]`."""
    for value, count in zip(values, counts, strict=True):
        check_expansion(count * len(value), len(value), "copies of a value")
    if is_text_or_bytes(value_type):
        offsets = np.zeros(sum(counts) + 1, np.int64)
        np.array([len(value) for value in values]).repeat(counts).cumsum(out=offsets[1:])
        return VariableWidth(offsets, _copies(values, counts))
    bits, total = bits_per_value_of(value_type), sum(counts)
    if bits % 8:
        flags = np.array([value[0] & 1 for value in values]).repeat(counts)
        return FixedWidth(np.packbits(flags, bitorder="little"), bits, total)
    return FixedWidth(_copies(values, counts), bits, total)


def _copies(values: Sequence[bytes], counts: Sequence[int]) -> Uint8Array:
    return np.frombuffer(b"".join([value * count for value, count in zip(values, counts, strict=True)]), np.uint8)
