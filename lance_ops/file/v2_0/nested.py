"""Encodings of fixed-size lists and of packed structs, which store rows one after the other, in 2.0 pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Uint8Array
from lance_ops.encodings import FixedWidth, check
from lance_ops.file.arrow_values import array_of, bits_per_value_of
from lance_ops.file.page_reading import RowSelection, Steps, read_flat_values
from lance_ops.file.v2_0.contract import ArrayContext, ArrayEncoding, ReadArray
from lance_ops.pb import encodings_v2_0_pb2 as pb

__all__ = ["FixedSizeList", "PackedStruct"]


_MAX_ITEMS = 1 << 48


class FixedSizeList(ArrayEncoding):
    """Fixed-size lists; their items are stored one after the other."""

    MESSAGE: ClassVar[str] = "fixed_size_list"

    def __init__(self, message: pb.FixedSizeList, context: ArrayContext, nested: ReadArray) -> None:
        arrow_type = context.arrow_type
        is_list = pt.is_fixed_size_list(arrow_type) and arrow_type.list_size == message.dimension
        check(is_list, f"lists of {message.dimension} in a column of {arrow_type}")
        self._arrow_type = arrow_type
        length = context.length * message.dimension
        check(length < _MAX_ITEMS, f"{length} items")
        self._items = nested(message.items, replace(context, arrow_type=arrow_type.value_type, length=length))

    @classmethod
    def from_pb(cls, message: pb.FixedSizeList, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context, nested)

    def inner(self) -> Sequence[ArrayEncoding]:
        return (self._items,)

    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        items = yield from self._items.read(rows.scaled(self._arrow_type.list_size))
        return pa.Array.from_buffers(self._arrow_type, rows.count, [None], children=[items])


class PackedStruct(ArrayEncoding):
    """Structs of fixed-width children, stored row by row; nested lists and structs too."""

    MESSAGE: ClassVar[str] = "packed_struct"

    def __init__(self, message: pb.PackedStruct, context: ArrayContext) -> None:
        self._arrow_type = context.arrow_type
        self._extent = context.buffer(message.buffer)
        self._width = _width_of(pb.ArrayEncoding(packed_struct=message), context.arrow_type)
        needed = context.length * self._width
        check(needed <= self._extent.size, f"{self._extent.size} bytes for {context.length} structs")

    @classmethod
    def from_pb(cls, message: pb.PackedStruct, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context)

    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        packed = yield from read_flat_values(self._extent, self._width * 8, rows)
        return _unpack(packed.data[: packed.size_bytes].reshape(rows.count, self._width), self._arrow_type)


def _width_of(described: pb.ArrayEncoding, arrow_type: pa.DataType) -> int:
    """Return the bytes of a packed value; the buffers named in its description do not exist."""
    message = described.WhichOneof("array_encoding")
    if message == "packed_struct":
        inner = described.packed_struct.inner
        is_struct = pt.is_struct(arrow_type) and arrow_type.num_fields == len(inner)
        check(is_struct, f"{len(inner)} packed children in a column of {arrow_type}")
        return sum(_width_of(child, field.type) for child, field in zip(inner, arrow_type, strict=True))
    if message == "nullable" and described.nullable.WhichOneof("nullability") == "no_nulls":
        return _width_of(described.nullable.no_nulls.values, arrow_type)
    if message == "fixed_size_list":
        size = described.fixed_size_list.dimension
        is_list = pt.is_fixed_size_list(arrow_type) and arrow_type.list_size == size
        check(is_list, f"packed lists of {size} in a column of {arrow_type}")
        return size * _width_of(described.fixed_size_list.items, arrow_type.value_type)
    bits = described.flat.bits_per_value
    if message != "flat" or bits % 8 or pt.is_dictionary(arrow_type):
        raise UnsupportedFeature(f"{arrow_type} in a packed struct of a 2.0 file")
    check(bits == bits_per_value_of(arrow_type), f"packed {bits}-bit values of {arrow_type}")
    return bits // 8


def _unpack(packed: Uint8Array, arrow_type: pa.DataType) -> pa.Array:
    """Return an array with one value for each row of bytes."""
    rows, width = packed.shape
    if pt.is_struct(arrow_type):
        children, start = [], 0
        for field in arrow_type:
            stop = start + _bytes_of(field.type)
            children.append(_unpack(packed[:, start:stop], field.type))
            start = stop
        return pa.Array.from_buffers(arrow_type, rows, [None], children=children)
    if pt.is_fixed_size_list(arrow_type):
        size = arrow_type.list_size
        items = _unpack(packed.reshape(rows * size, width // size), arrow_type.value_type)
        return pa.Array.from_buffers(arrow_type, rows, [None], children=[items])
    return array_of(FixedWidth(np.ascontiguousarray(packed).reshape(-1), width * 8, rows), arrow_type)


def _bytes_of(arrow_type: pa.DataType) -> int:
    if pt.is_struct(arrow_type):
        return sum(_bytes_of(field.type) for field in arrow_type)
    if pt.is_fixed_size_list(arrow_type):
        return int(arrow_type.list_size) * _bytes_of(arrow_type.value_type)
    return bits_per_value_of(arrow_type) // 8
