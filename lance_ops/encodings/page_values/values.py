"""The in-memory form of values between the buffers of a page and Arrow.

Values are never null: definition levels hold the nulls. Only a fixed-size list carries the validity of its items as
part of the value. Arrays are `uint8` and may be read-only views of a mapped file, so no code writes into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias, cast

import numpy as np

from lance_ops.core.arrow import new_array
from lance_ops.core.ndarrays import Int64Array, OffsetArray, Uint8Array, UnsignedArray
from lance_ops.core.records import dataclass
from lance_ops.encodings.page_values.bits import bits_of, concat_bits, num_bytes_of_bits

__all__ = [
    "FixedSizeListValues",
    "FixedWidth",
    "PackedValues",
    "Values",
    "VariableWidth",
    "concat_values",
    "narrow_offsets",
    "offsets_of_lengths",
]

_MAX_I32 = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class FixedWidth:
    """Values of one width, little-endian and side by side; one-bit values fill each byte from its lowest bit."""

    data: Uint8Array
    bits_per_value: int
    num_values: int

    @property
    def size_bytes(self) -> int:
        """The bytes that the values take; `data` may be longer."""
        return num_bytes_of_bits(self.num_values * self.bits_per_value)

    def as_integers(self) -> UnsignedArray:
        """View values of 8, 16, 32 or 64 bits as unsigned integers, without a copy."""
        dtype = np.dtype(f"<u{self.bits_per_value // 8}")
        return self.data[: self.num_values * dtype.itemsize].view(dtype)

    def slice(self, start: int, stop: int) -> FixedWidth:
        """Return the values in `[start, stop)`, without a copy if they begin at a byte."""
        first_bit, last_bit = start * self.bits_per_value, stop * self.bits_per_value
        return FixedWidth(bits_of(self.data, first_bit, last_bit), self.bits_per_value, stop - start)


@dataclass(frozen=True, eq=False)
class VariableWidth:
    """Byte strings: value `i` is `data[offsets[i]:offsets[i + 1]]`; `offsets[0]` is 0.

    Offsets are 32 bits wide if the page states it and they can count the bytes, else 64.
    """

    offsets: OffsetArray
    data: Uint8Array

    @property
    def num_values(self) -> int:
        """The number of byte strings."""
        return len(self.offsets) - 1

    @property
    def size_bytes(self) -> int:
        """The bytes of all values, without their offsets."""
        return int(self.offsets[-1])

    @property
    def bits_per_offset(self) -> int:
        """32 or 64."""
        return self.offsets.dtype.itemsize * 8

    def lengths(self) -> OffsetArray:
        """Return the length of each value in bytes."""
        return cast(OffsetArray, self.offsets[1:] - self.offsets[:-1])

    def slice(self, start: int, stop: int) -> VariableWidth:
        """Return the values in `[start, stop)`; the bytes are not copied."""
        offsets = self.offsets[start : stop + 1]
        return VariableWidth(cast(OffsetArray, offsets - offsets[0]), self.data[int(offsets[0]) : int(offsets[-1])])


@dataclass(frozen=True, eq=False)
class FixedSizeListValues:
    """Lists of `dimension` items, flattened; `validity` has one bit for each item (1 = valid), or is None."""

    items: FixedWidth | FixedSizeListValues
    dimension: int
    validity: Uint8Array | None = None

    @property
    def num_values(self) -> int:
        """The number of lists."""
        return self.items.num_values // self.dimension

    @property
    def size_bytes(self) -> int:
        """The bytes of all items and of their validity."""
        bitmap = num_bytes_of_bits(self.items.num_values) if self.validity is not None else 0
        return self.items.size_bytes + bitmap

    def slice(self, start: int, stop: int) -> FixedSizeListValues:
        """Return the lists in `[start, stop)`."""
        first, last = start * self.dimension, stop * self.dimension
        validity = None if self.validity is None else bits_of(self.validity, first, last)
        return replace(self, items=self.items.slice(first, last), validity=validity)


@dataclass(frozen=True, eq=False)
class PackedValues:
    """Structs that are stored row by row; each child has as many values as there are structs."""

    children: tuple[Values, ...]

    @property
    def num_values(self) -> int:
        """The number of structs."""
        return self.children[0].num_values

    @property
    def size_bytes(self) -> int:
        """The bytes of all children."""
        return sum(child.size_bytes for child in self.children)

    def slice(self, start: int, stop: int) -> PackedValues:
        """Return the structs in `[start, stop)`."""
        return PackedValues(tuple(child.slice(start, stop) for child in self.children))


Values: TypeAlias = FixedWidth | VariableWidth | FixedSizeListValues | PackedValues


def offsets_of_lengths(lengths: Int64Array, bits_per_offset: int) -> OffsetArray:
    """Return the offsets of values that lie end to end, from 0; 64 bits wide if 32 cannot count the bytes."""
    offsets = new_array(len(lengths) + 1, np.int64)
    offsets[0] = 0
    np.cumsum(lengths, out=offsets[1:])
    return narrow_offsets(offsets, bits_per_offset)


def narrow_offsets(offsets: OffsetArray, bits_per_offset: int) -> OffsetArray:
    """Return the offsets in 32 bits if the caller asks for that and they can count the bytes."""
    return offsets.astype(np.int32, copy=False) if bits_per_offset == 32 and offsets[-1] <= _MAX_I32 else offsets


def concat_values(parts: Sequence[Values]) -> Values:
    """Return the values of `parts` in order. The caller gives at least one part, and all have the same shape."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, FixedWidth):
        return _concat_fixed(cast(Sequence[FixedWidth], parts))
    if isinstance(first, VariableWidth):
        return _concat_variable(cast(Sequence[VariableWidth], parts))
    if isinstance(first, FixedSizeListValues):
        return _concat_lists(cast(Sequence[FixedSizeListValues], parts))
    structs = cast(Sequence[PackedValues], parts)
    return PackedValues(tuple(concat_values(children) for children in zip(*(s.children for s in structs), strict=True)))


def _concat_fixed(parts: Sequence[FixedWidth]) -> FixedWidth:
    bits = parts[0].bits_per_value
    data = concat_bits([(part.data, part.num_values * bits) for part in parts])
    return FixedWidth(data, bits, sum(part.num_values for part in parts))


def _concat_variable(parts: Sequence[VariableWidth]) -> VariableWidth:
    sizes = [part.size_bytes for part in parts]
    narrow = sum(sizes) <= _MAX_I32 and all(part.bits_per_offset == 32 for part in parts)
    offsets = new_array(sum(part.num_values for part in parts) + 1, np.int32 if narrow else np.int64)
    offsets[0] = 0
    at, num_bytes = 1, 0
    for part, size_bytes in zip(parts, sizes, strict=True):
        np.add(part.offsets[1:], num_bytes, out=offsets[at : at + part.num_values], dtype=offsets.dtype)
        at, num_bytes = at + part.num_values, num_bytes + size_bytes
    data = np.concatenate([part.data[:size_bytes] for part, size_bytes in zip(parts, sizes, strict=True)])
    return VariableWidth(offsets, data)


def _concat_lists(parts: Sequence[FixedSizeListValues]) -> FixedSizeListValues:
    items = concat_values([part.items for part in parts])
    assert isinstance(items, FixedWidth | FixedSizeListValues)
    if all(part.validity is None for part in parts):
        return replace(parts[0], items=items)
    bitmaps = [
        (np.full(num_bytes_of_bits(part.items.num_values), 0xFF, np.uint8) if part.validity is None else part.validity)
        for part in parts
    ]
    counts = [part.items.num_values for part in parts]
    return replace(parts[0], items=items, validity=concat_bits(list(zip(bitmaps, counts, strict=True))))
