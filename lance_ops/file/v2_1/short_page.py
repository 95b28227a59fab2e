"""Encode a short page in one step: a mini-block page of one chunk whose values are not compressed, or a constant.

Other pages are measured, their encodings are compared, and their values are cut into chunks. For a page of a few rows,
that would cost more than everything else a writer does. `layouts.chunk_format` has the layout of a chunk.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import OffsetArray, Uint8Array
from lance_ops.encodings import NO_OPTIONS, FixedWidth, VariableWidth, bits_of, is_stored_plain, plain_encoding
from lance_ops.file.arrow_values import validity_of
from lance_ops.file.container import PADDING, EncodedPage
from lance_ops.file.v2_1 import layouts
from lance_ops.file.v2_1.layers import Items
from lance_ops.file.v2_1.layouts import LeafRows, PageChoice
from lance_ops.file.v2_1.levels import encode_levels
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["NUMBER_WIDTHS", "encode_short_page", "plain_parts"]

_NUMBERS = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.timestamp("us"), pa.duration("us")),
    *(pa.time32("s"), pa.time64("us"), pa.decimal128(1), pa.decimal256(1)),
)
NUMBER_WIDTHS = {number.id: number.bit_width // 8 for number in _NUMBERS}
"""The bytes of a number, by type id."""
_OFFSETS: dict[int, Any] = {
    **{kind.id: np.dtype("<i4") for kind in (pa.string(), pa.binary())},
    **{kind.id: np.dtype("<i8") for kind in (pa.large_string(), pa.large_binary())},
}
"""The type of the offsets of strings, by type id."""

_BOOL = pa.bool_().id
_LEVEL_BITS = 16
_PAD = bytes([PADDING]) * 8
_WORDS = {False: struct.Struct("<H"), True: struct.Struct("<I")}
_HEADERS = {False: struct.Struct("<HH4s"), True: struct.Struct("<HI2s")}
_HEADERS_WITH_LEVELS = {False: struct.Struct("<HHH2s"), True: struct.Struct("<HHI0s")}


def encode_short_page(rows: LeafRows, choice: PageChoice) -> EncodedPage | None:
    """Return a page of numbers, booleans or strings that `is_stored_plain`; None for any other page.

    Others are longer pages, pages of nulls alone, in lists, below structs with nulls, of other types, or with options.
    """
    array, large = rows.values, choice.large_chunks
    num_values, kind, num_nulls = len(array), array.type.id, array.null_count
    if num_nulls == num_values or choice.options is not NO_OPTIONS:
        return None
    if rows.layers and not all(type(layer) is Items and layer.validity is None for layer in rows.layers):
        return None
    may_be_constant = large and not num_nulls
    value: FixedWidth | VariableWidth | None
    if kind in NUMBER_WIDTHS:
        width = NUMBER_WIDTHS[kind]
        size = num_values * width
        if not is_stored_plain(num_values, size):
            return None
        values = array.buffers()[1].slice(array.offset * width, size).to_pybytes()
        bits = 8 * width
        value = _only_number(values, width, num_values) if may_be_constant else None
    elif kind in _OFFSETS:
        dtype = _OFFSETS[kind]
        _, places, data = array.buffers()
        offsets: OffsetArray = np.frombuffer(places, dtype, num_values + 1, array.offset * dtype.itemsize)
        first, size, header = int(offsets[0]), int(offsets[-1] - offsets[0]), offsets.nbytes
        if not is_stored_plain(num_values, header + size):
            return None
        text = data.slice(first, size).to_pybytes() if size else b""
        values = b"".join(((offsets + (header - first)).tobytes(), text, bytes(-size % dtype.itemsize)))
        bits = 8 * dtype.itemsize
        value = _only_string(text, offsets) if may_be_constant else None
    elif kind == _BOOL:
        if not is_stored_plain(num_values, -(-num_values // 8)):
            return None
        flags, bits = _flags_of(array), 1
        values = np.packbits(flags, bitorder="little").tobytes()
        is_one_value = may_be_constant and bool(flags.min() == flags.max())
        value = FixedWidth(flags[:1], bits, 1) if is_one_value else None
    else:
        return None
    if value is not None:
        return layouts.encode_constant(value, encode_levels([*rows.layers, Items(num_values)]), choice)
    levels = b"" if not num_nulls else _definition_levels(array)
    chunk = _chunk(num_values, levels, values, large)
    word = _WORDS[large].pack(len(chunk) // 8 - 1 << 4)
    description = _describe(bits, kind in _OFFSETS, num_values, num_nulls > 0, len(rows.layers), large)
    return EncodedPage(description, (word, chunk), num_values)


def plain_parts(num_values: int, bits: int, choice: PageChoice) -> tuple[bytes, bytes, int, bytes]:
    """Return what pages of this many plain numbers without nulls have in common.

    These are the chunk word, the header of the chunk, the number of bytes that pad the numbers, and the description.
    """
    large, size = choice.large_chunks, num_values * bits // 8
    header, padding = _HEADERS[large].pack(0, size, _PAD), -size % 8
    word = _WORDS[large].pack((len(header) + size + padding) // 8 - 1 << 4)
    return word, header, padding, _describe(bits, False, num_values, False, 0, large).SerializeToString()


def _only_number(values: bytes, width: int, num_values: int) -> FixedWidth | None:
    """Return the value if all are equal."""
    value = values[:width]
    if value * num_values != values:
        return None
    return FixedWidth(np.frombuffer(value, np.uint8), 8 * width, 1)


def _only_string(text: bytes, offsets: OffsetArray) -> VariableWidth | None:
    """Return the value if all are equal."""
    num_values, size = len(offsets) - 1, int(offsets[1] - offsets[0])
    value = text[:size]
    if value * num_values != text or (np.diff(offsets) != size).any():
        return None
    return VariableWidth(offsets[:2] - offsets[0], np.frombuffer(value, np.uint8))


def _flags_of(array: pa.Array) -> Uint8Array:
    """Return the values of an array of booleans as bytes, 0 or 1."""
    stored = np.frombuffer(array.buffers()[1], np.uint8)
    bits = bits_of(stored, array.offset, array.offset + len(array))
    return np.unpackbits(bits, count=len(array), bitorder="little")


def _definition_levels(array: pa.Array) -> bytes:
    """Return a level for each value of an array with nulls: 1 if it is null, otherwise 0."""
    present = validity_of(array)
    assert present is not None
    return (~present).astype("<u2").tobytes()


def _chunk(num_values: int, levels: bytes, values: bytes, large: bool) -> bytes:
    """Return the only chunk of a page; without levels, its header counts none."""
    padding = _PAD[: -len(values) % 8]
    if not levels:
        return b"".join((_HEADERS[large].pack(0, len(values), _PAD), values, padding))
    header = _HEADERS_WITH_LEVELS[large].pack(num_values, len(levels), len(values), _PAD)
    return b"".join((header, levels, _PAD[: -len(levels) % 8], values, padding))


@lru_cache(maxsize=1024)
def _describe(
    bits: int, is_variable: bool, num_values: int, has_nulls: bool, num_layers: int, large: bool
) -> pb.PageLayout:
    """Return the description of a page, which many pages of a table have in common; nobody may change it."""
    innermost = pb.REPDEF_NULLABLE_ITEM if has_nulls else pb.REPDEF_ALL_VALID_ITEM
    return pb.PageLayout(
        mini_block_layout=pb.MiniBlockLayout(
            def_compression=plain_encoding(_LEVEL_BITS).to_pb() if has_nulls else None,
            value_compression=plain_encoding(bits, is_variable=is_variable).to_pb(),
            layers=[innermost, *[pb.REPDEF_ALL_VALID_ITEM] * num_layers],
            num_buffers=1,
            num_items=num_values,
            has_large_chunk=large,
        )
    )
