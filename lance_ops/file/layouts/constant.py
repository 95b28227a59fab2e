"""Constant: all visible values are equal, or none is there.

    page buffers    none | value | repetition, definition levels | value, repetition levels, definition levels
    value buffer    u32 num_buffers | u32 size of each | the buffers: one of a fixed-width value; of a variable-width
                    one, its offsets [0, size], as wide as the column's, and its bytes

A fixed-width value of at most 32 bytes stands in the description instead of a buffer. Levels are u16 numbers, or what
the description says they are compressed to; a kind of levels that the page does not need has an empty buffer. Without
a value and without buffers, everything is null.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.encodings.contract import CorruptValues, Encoding, check
from lance_ops.encodings.expansion import check_expansion
from lance_ops.encodings.registry import encoding_from_pb
from lance_ops.encodings.values import FixedWidth, Values, VariableWidth
from lance_ops.file.arrays import array_of, bits_per_value_of, is_variable
from lance_ops.file.container import Extent
from lance_ops.file.encoded import EncodedPage
from lance_ops.file.layouts.contract import (
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
from lance_ops.file.levels import EncodedLevels, Entries
from lance_ops.file.rows import Rows, RowSlice
from lance_ops.file.source import Ranges, SourceBytes, Steps
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["ConstantPage", "encode_constant"]

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

_MAX_VALUE_BUFFERS = 2
_MAX_INLINE_BYTES = 32


@dataclass(frozen=True, eq=False)
class _Content:
    """The page's levels and value; `row_starts` has the first entry of every row and their end, None without lists."""

    entries: Entries
    row_starts: Integers | None
    value: Values | None


class ConstantPage(PageLayout):
    """A page of one value, or none; keeps its levels once they are loaded."""

    MESSAGE: ClassVar[str] = "constant_layout"

    def __init__(self, message: pb.ConstantLayout, context: PageContext) -> None:
        self._context = context
        self._scheme = read_scheme(message.layers, context.leaf)
        self._inline = message.inline_value if message.HasField("inline_value") else None
        self._rep = encoding_from_pb(message.rep_compression) if message.HasField("rep_compression") else None
        self._def = encoding_from_pb(message.def_compression) if message.HasField("def_compression") else None
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

    def read(self, rows: Rows) -> Steps[LeafRows]:
        content = self._content
        if content is None:
            fetched = yield Ranges.of(*((extent.position, extent.end) for extent in self._context.buffers))
            content = self._content = self._load(fetched)
        elements = rows.scaled(self._context.leaf.elements_per_row)
        entries = _entries_of(elements, content)
        visible = entries.count
        if entries.definition is not None and self._scheme.has_invisible:
            visible = int(np.count_nonzero(entries.definition <= self._scheme.max_visible_def))
        value = content.value

        def to_array(validity: Bools | None) -> pa.Array:
            if value is None:
                return self._without_value(visible, entries)
            return array_of(_repeat(value, visible), self._context.leaf.arrow_type, validity)

        return self._context.finish(rows.count, self._scheme, entries, to_array)

    def _without_value(self, count: int, entries: Entries) -> pa.Array:
        leaf_type = self._context.leaf.arrow_type
        if pt.is_struct(leaf_type) and not leaf_type.num_fields:
            return pa.Array.from_buffers(leaf_type, count, [None])  # written as if null; its nulls are not stored
        all_null = entries.definition is not None and entries.definition.min(initial=1) > 0
        check(count == 0 or all_null, "values, but no value to give them")
        return pa.nulls(count, leaf_type)

    def _load(self, fetched: SourceBytes) -> _Content:
        rep = definition = None
        if self._level_buffers:
            rep = _levels(fetched, self._level_buffers[0], self._rep, self._num_rep)
            definition = _levels(fetched, self._level_buffers[1], self._def, self._num_def)
        elif self._value_is_absent and self._scheme.max_def:
            check(self._scheme.max_def == 1 and not self._scheme.max_rep, "no levels to tell nulls apart")
            definition = np.broadcast_to(np.uint16(1), self._context.length)  # however many: nobody may look at all
        check(rep is not None or not self._scheme.max_rep, "lists without repetition levels")
        levels = definition if rep is None else rep
        count = self._context.length if levels is None else len(levels)
        entries = Entries(count, rep, definition)
        if self._level_buffers:
            check_entries(self._scheme, entries)
        row_starts = None
        num_rows = count
        if rep is not None:
            row_starts = np.append(np.flatnonzero(rep == self._scheme.max_rep), count)
            num_rows = len(row_starts) - 1
        check(num_rows == self._context.length, f"levels of {num_rows} rows in a page of {self._context.length}")
        return _Content(entries, row_starts, self._value(fetched))

    @property
    def _value_is_absent(self) -> bool:
        return self._inline is None and not self._has_value_buffer

    def _value(self, fetched: SourceBytes) -> Values | None:
        leaf_type = self._context.leaf.arrow_type
        if pt.is_dictionary(leaf_type):
            leaf_type = leaf_type.value_type
        if self._inline is not None:
            return _fixed(np.frombuffer(self._inline, np.uint8), leaf_type)
        if not self._has_value_buffer:
            return None
        extent = self._context.buffers[0]
        parts = _split(fetched.view(extent.position, extent.end))
        if is_variable(leaf_type):
            check(len(parts) == 2 and len(parts[0]) in (8, 16), "not the two buffers of a variable-width value")
            offsets = parts[0].view(f"<u{len(parts[0]) // 2}")
            check(offsets[0] == 0 and offsets[1] == len(parts[1]), "a value that is not as long as it says")
            return VariableWidth(np.array([0, len(parts[1])], np.int64), parts[1])
        check(len(parts) == 1, f"{len(parts)} buffers of a fixed-width value")
        return _fixed(parts[0], leaf_type)


def encode_constant(value: FixedWidth | VariableWidth | None, levels: EncodedLevels, choice: PageChoice) -> EncodedPage:
    """Return a page whose visible values are all `value`, or, with None, are all null or not there."""
    layout = pb.ConstantLayout(layers=levels.scheme.kinds)  # type: ignore[arg-type]  # numbers of the enum
    buffers: list[Bytes] = []
    if isinstance(value, FixedWidth) and len(value.data) <= _MAX_INLINE_BYTES:
        layout.inline_value = value.data.tobytes()
    elif value is not None:
        buffers.append(_join(value))
    length = levels.num_entries if levels.rep is None else levels.num_rows
    has_one_null_kind = value is None and levels.scheme.kinds == (pb.REPDEF_NULLABLE_ITEM,)
    if (levels.rep is not None or levels.definition is not None) and not has_one_null_kind:
        buffers += [_raw(levels.rep), _raw(levels.definition)]
    return EncodedPage(pb.PageLayout(constant_layout=layout), tuple(buffers), length)


def _raw(levels: npt.NDArray[np.uint16] | None) -> Bytes:
    return np.empty(0, np.uint8) if levels is None else np.ascontiguousarray(levels, "<u2").view(np.uint8)


def _join(value: FixedWidth | VariableWidth) -> Bytes:
    """Return a value buffer."""
    parts = [value.data[: value.size_bytes].tobytes()]
    if isinstance(value, VariableWidth):
        parts.insert(0, struct.pack("<II" if value.bits_per_offset == 32 else "<QQ", 0, value.size_bytes))
    sizes = struct.pack(f"<I{len(parts)}I", len(parts), *map(len, parts))
    return np.frombuffer(b"".join([sizes, *parts]), np.uint8)


def _entries_of(rows: Rows, content: _Content) -> Entries:
    """Return the entries of these rows."""
    starts = content.row_starts
    if isinstance(rows, RowSlice):
        if starts is None:
            return content.entries.take(slice(rows.start, rows.stop))
        return content.entries.take(slice(int(starts[rows.start]), int(starts[rows.stop])))
    if starts is None:
        return content.entries.take(rows.indices)
    counts = starts[rows.indices + 1] - starts[rows.indices]
    ends = np.cumsum(counts)
    return content.entries.take(np.repeat(starts[rows.indices] - (ends - counts), counts) + np.arange(int(ends[-1])))


def _levels(
    fetched: SourceBytes, extent: Extent, encoding: Encoding | None, num_levels: int
) -> npt.NDArray[np.uint16] | None:
    data = fetched.view(extent.position, extent.end)
    if not len(data):
        return None
    if encoding is not None:
        levels = levels_of(encoding.decode_block(data, num_levels))
        check(len(levels) == num_levels, "levels that are not as many as they say")
        return levels
    check(len(data) % 2 == 0, f"{len(data)} bytes of u16 levels")
    return data.view("<u2")


def _fixed(value: Bytes, leaf_type: pa.DataType) -> FixedWidth:
    bits = bits_per_value_of(leaf_type)
    check(len(value) == -(-bits // 8), f"a value of {len(value)} bytes in a column of {leaf_type}")
    return FixedWidth(value, bits, 1)


def _split(data: Bytes) -> list[Bytes]:
    """Split a value buffer into the buffers in it."""
    check(len(data) >= 4, "a value buffer without a count")
    count = int(data[:4].view("<u4")[0])
    check(
        count <= _MAX_VALUE_BUFFERS and len(data) >= 4 + 4 * count, f"{count} buffers in a value of {len(data)} bytes"
    )
    sizes = data[4 : 4 + 4 * count].view("<u4").astype(np.int64)
    ends = 4 + 4 * count + np.cumsum(sizes)
    check(int(ends.max(initial=4)) <= len(data), "a value's buffers are longer than the value")
    return [data[int(end - size) : int(end)] for end, size in zip(ends, sizes, strict=True)]


def _repeat(value: Values, count: int) -> Values:
    check_expansion(count * value.size_bytes, value.size_bytes, "copies of a value")
    if isinstance(value, VariableWidth):
        offsets = np.arange(count + 1, dtype=np.int64) * value.size_bytes
        return VariableWidth(offsets, np.tile(value.data, count))
    if not isinstance(value, FixedWidth):
        raise CorruptValues("a constant that is neither of fixed nor of variable width")
    if value.bits_per_value % 8:
        flag = np.uint8(0xFF if value.data[0] & 1 else 0)
        return FixedWidth(np.full(-(-count // 8), flag), value.bits_per_value, count)
    return FixedWidth(np.tile(value.data, count), value.bits_per_value, count)
