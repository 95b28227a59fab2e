"""Fixed-size lists: their items flattened, with a validity bitmap over the items where some are null.

chunk    [validity of n * dimension items] | buffers of the items' encoding
block    the items' block; items in a block are never null
zipped   per list: [ceil(dimension / 8) bytes of validity] | the items
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self, TypeAlias

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.chunking import chunk_counts_of_width
from lance_ops.encodings.compressive.constant import ConstantEncoding
from lance_ops.encodings.compressive.flat import FlatEncoding
from lance_ops.encodings.contract import (
    DEFAULT_LIMITS,
    ChunkBuffers,
    ChunkLimits,
    EncodedChunks,
    Encoding,
    Picks,
    ReadNested,
    check,
)
from lance_ops.encodings.page_values import (
    FixedSizeListValues,
    FixedWidth,
    Values,
    bits_of,
    gather_ranges,
    num_bytes_of_bits,
)
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["FixedSizeListEncoding"]

_MAX_DIMENSION = 1 << 31
_MAX_ITEMS = 1 << 48


ALL_NULL = ConstantEncoding(b"")
"""The encoding of items that are all null; it takes no bytes."""


@dataclass(frozen=True)
class FixedSizeListEncoding(Encoding):
    """Lists of `dimension` items; `items` is a flat encoding, another list, or a constant if every item is null."""

    MESSAGE: ClassVar[str] = "fixed_size_list"

    dimension: int
    has_validity: bool
    items: ListItems

    @classmethod
    def from_pb(cls, message: pb.FixedSizeList, nested: ReadNested) -> Self:
        check(0 < message.items_per_value < _MAX_DIMENSION, f"lists of {message.items_per_value} items")
        items = nested(message.values)
        if not isinstance(items, FlatEncoding | FixedSizeListEncoding) and items != ALL_NULL:
            raise items._unsupported("inside fixed-size lists")
        check(items != ALL_NULL or message.has_validity, "lists of nulls that do not say so")
        return cls(message.items_per_value, message.has_validity, items)

    def to_pb(self) -> pb.CompressiveEncoding:
        described = pb.FixedSizeList(
            items_per_value=self.dimension, has_validity=self.has_validity, values=self.items.to_pb()
        )
        return pb.CompressiveEncoding(fixed_size_list=described)

    @property
    def num_buffers(self) -> int:
        return self.items.num_buffers + self.has_validity

    @property
    def bits_per_item_row(self) -> int:
        """The bits of one list's innermost items."""
        if isinstance(self.items, FixedSizeListEncoding):
            return self.dimension * self.items.bits_per_item_row
        return self.dimension * _stored_bits(self.items)

    @property
    def zipped_bytes(self) -> int:
        """The bytes of one list in a full-zip page."""
        return sum(self._zipped_bitmaps()) + num_bytes_of_bits(self.bits_per_item_row)

    def decode_chunks(self, chunks: ChunkBuffers) -> FixedSizeListValues:
        chunks.expect_buffers(self.num_buffers)
        check(chunks.total_values * self.dimension < _MAX_ITEMS, f"{chunks.total_values} lists of {self.dimension}")
        num_items = chunks.num_values * self.dimension
        inner = replace(
            chunks,
            starts=chunks.starts[self.has_validity :],
            sizes=chunks.sizes[self.has_validity :],
            num_values=num_items,
        )
        items = self.items.decode_chunks(inner)
        validity = self._decode_validity(chunks, num_items) if self.has_validity else None
        return FixedSizeListValues(items, self.dimension, validity)

    def pick_chunks(self, chunks: ChunkBuffers, picks: Picks) -> Values:
        if self.has_validity or self.num_buffers != 1 or self.bits_per_item_row % 8:
            return super().pick_chunks(chunks, picks)
        # a list without validity is one wide value
        rows = FlatEncoding(self.bits_per_item_row).pick_chunks(chunks, picks)
        return self._unzip(rows.data.reshape(picks.count, self.bits_per_item_row // 8), 1)

    def _decode_validity(self, chunks: ChunkBuffers, num_items: Int64Array) -> Uint8Array:
        bitmaps = replace(chunks, starts=chunks.starts[:1], sizes=chunks.sizes[:1], num_values=num_items, located=False)
        return FlatEncoding(1).decode_chunks(bitmaps).data

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        lists = self._expect(values)
        bits = self.bits_per_item_row + 8 * sum(self._zipped_bitmaps())
        counts = chunk_counts_of_width(lists.num_values, bits, limits)
        return self._cut(lists, counts)

    def _cut(self, lists: FixedSizeListValues, counts: Int64Array) -> EncodedChunks:
        num_items = counts * self.dimension
        inner = (
            self.items._cut(self.items._expect(lists.items), num_items)
            if isinstance(self.items, FixedSizeListEncoding)
            else _cut_items(lists.items, num_items, self.items)
        )
        if not self.has_validity:
            return EncodedChunks(counts, inner.data, inner.sizes)
        bitmaps = _cut_bits(_validity_of(lists), num_items, 1)
        return EncodedChunks(counts, bitmaps.data + inner.data, bitmaps.sizes + inner.sizes)

    def decode_block(self, data: Uint8Array, num_values: int) -> FixedSizeListValues:
        if self.has_validity:
            raise self._unsupported("with item validity as a block")
        return FixedSizeListValues(self.items.decode_block(data, num_values * self.dimension), self.dimension)

    def encode_block(self, values: Values) -> Uint8Array:
        if self.has_validity:
            raise self._unsupported("with item validity as a block")
        return self.items.encode_block(self._expect(values).items)

    def decode_zipped(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> FixedSizeListValues:
        check((sizes == self.zipped_bytes).all(), "a zipped list is not as long as its encoding says")
        rows = gather_ranges(data, starts, sizes).reshape(len(starts), self.zipped_bytes)
        return self._unzip(rows, 1)

    def _unzip(self, rows: Uint8Array, outer: int) -> FixedSizeListValues:
        """Split rows `[own bitmap | inner bitmaps | items]`; a row holds `outer` lists of this encoding."""
        validity = None
        num_bits = outer * self.dimension
        if self.has_validity:
            bitmap_bytes = num_bytes_of_bits(num_bits)
            validity = _join_row_bits(rows[:, :bitmap_bytes], num_bits)
            rows = rows[:, bitmap_bytes:]
        if isinstance(self.items, FixedSizeListEncoding):
            return FixedSizeListValues(self.items._unzip(rows, num_bits), self.dimension, validity)
        bits_per_item = _stored_bits(self.items)
        data = _join_row_bits(rows, num_bits * bits_per_item)
        items = FixedWidth(data, bits_per_item, len(rows) * num_bits)
        return FixedSizeListValues(items, self.dimension, validity)

    def encode_zipped(self, values: Values) -> FixedWidth:
        lists = self._expect(values)
        if lists.num_values == 0:
            return FixedWidth(np.empty(0, np.uint8), self.zipped_bytes * 8, 0)
        columns = self._zip_columns(lists, lists.num_values)
        rows = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        return FixedWidth(rows.reshape(-1), self.zipped_bytes * 8, lists.num_values)

    def _zip_columns(self, lists: FixedSizeListValues, num_rows: int) -> list[Uint8Array]:
        columns = []
        num_bits = lists.items.num_values // num_rows
        if self.has_validity:
            columns.append(_split_row_bits(_validity_of(lists), num_rows, num_bits))
        if isinstance(self.items, FixedSizeListEncoding):
            return columns + self.items._zip_columns(self.items._expect(lists.items), num_rows)
        columns.append(_split_row_bits(_data_of(lists.items), num_rows, num_bits * _stored_bits(self.items)))
        return columns

    def _zipped_bitmaps(self, outer: int = 1) -> list[int]:
        """Return the bytes of each validity bitmap of one row, outermost first."""
        num_bits = outer * self.dimension
        own = [num_bytes_of_bits(num_bits)] if self.has_validity else []
        return own + (self.items._zipped_bitmaps(num_bits) if isinstance(self.items, FixedSizeListEncoding) else [])

    def _expect(self, values: Values) -> FixedSizeListValues:
        if not isinstance(values, FixedSizeListValues) or values.dimension != self.dimension:
            raise TypeError(f"encoding of lists of {self.dimension} for {type(values).__name__}")
        if values.validity is not None and not self.has_validity:
            raise ValueError("lists with null items need an encoding with item validity")
        return values


ListItems: TypeAlias = FlatEncoding | ConstantEncoding | FixedSizeListEncoding


def _stored_bits(items: FlatEncoding | ConstantEncoding) -> int:
    return items.bits_per_value if isinstance(items, FlatEncoding) else 0


def _data_of(items: FixedWidth | FixedSizeListValues) -> Uint8Array:
    if not isinstance(items, FixedWidth):
        raise TypeError("nested lists where the encoding has flat items")
    return items.data[: items.size_bytes]


def _validity_of(lists: FixedSizeListValues) -> Uint8Array:
    num_bytes = num_bytes_of_bits(lists.items.num_values)
    return np.full(num_bytes, 0xFF, np.uint8) if lists.validity is None else lists.validity[:num_bytes]


def _cut_items(
    items: FixedWidth | FixedSizeListValues, counts: Int64Array, encoding: FlatEncoding | ConstantEncoding
) -> EncodedChunks:
    if isinstance(encoding, ConstantEncoding):
        return EncodedChunks(counts, (), ())
    return _cut_bits(_data_of(items), counts, encoding.bits_per_value)


def _cut_bits(data: Uint8Array, counts: Int64Array, bits_per_value: int) -> EncodedChunks:
    """Cut the bits of consecutive values into parts that each begin at a byte."""
    num_bits = counts * bits_per_value
    sizes = -(-num_bits // 8)
    if not (num_bits[:-1] % 8).any():
        return EncodedChunks(counts, (data,), (sizes,))
    ends = np.cumsum(num_bits)
    parts = [bits_of(data, int(end - n), int(end)) for end, n in zip(ends, num_bits, strict=True)]
    return EncodedChunks(counts, (np.concatenate(parts),), (sizes,))


def _join_row_bits(rows: Uint8Array, num_bits: int) -> Uint8Array:
    """Join the first `num_bits` of every row."""
    if num_bits % 8 == 0:
        return np.ascontiguousarray(rows[:, : num_bits // 8]).reshape(-1)  # Arrow does not accept strided arrays
    bits = np.unpackbits(rows, axis=1, count=num_bits, bitorder="little")
    return np.packbits(bits.reshape(-1), bitorder="little")


def _split_row_bits(data: Uint8Array, num_rows: int, num_bits: int) -> Uint8Array:
    """Cut a run of bits into rows of `num_bits`, each beginning at a byte."""
    if num_bits % 8 == 0:
        return data.reshape(num_rows, num_bits // 8)
    bits = np.unpackbits(data, count=num_rows * num_bits, bitorder="little").reshape(num_rows, num_bits)
    return np.packbits(bits, axis=1, bitorder="little")
