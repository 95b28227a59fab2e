"""Fixed-size lists of leaves, their items flattened; and structs stored row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.encodings.contract import check
from lance_ops.encodings.values import FixedWidth
from lance_ops.file.arrays import array_of, bits_per_value_of
from lance_ops.file.rows import Rows
from lance_ops.file.source import Steps
from lance_ops.file.v2_0.contract import ArrayContext, ArrayEncoding, ReadArray
from lance_ops.file.v2_0.fixed import read_values
from lance_ops.pb import encodings_v2_0_pb2 as pb

__all__ = ["FixedSizeList", "PackedStruct"]

_MAX_ITEMS = 1 << 48


class FixedSizeList(ArrayEncoding):
    """Lists of one size."""

    MESSAGE: ClassVar[str] = "fixed_size_list"

    def __init__(self, message: pb.FixedSizeList, context: ArrayContext, nested: ReadArray) -> None:
        arrow_type = context.arrow_type
        is_list = pt.is_fixed_size_list(arrow_type) and arrow_type.list_size == message.dimension
        check(is_list, f"lists of {message.dimension} in a column of {arrow_type}")
        if pt.is_struct(arrow_type.value_type):
            raise UnsupportedFeature("fixed-size lists of structs in 2.0 files")
        self._arrow_type = arrow_type
        length = context.length * message.dimension
        check(length < _MAX_ITEMS, f"{length} items")
        self._items = nested(message.items, replace(context, arrow_type=arrow_type.value_type, length=length))

    @classmethod
    def from_pb(cls, message: pb.FixedSizeList, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context, nested)

    def inner(self) -> Sequence[ArrayEncoding]:
        return (self._items,)

    def read(self, rows: Rows) -> Steps[pa.Array]:
        items = yield from self._items.read(rows.scaled(self._arrow_type.list_size))
        return pa.Array.from_buffers(self._arrow_type, rows.count, [None], children=[items])


class PackedStruct(ArrayEncoding):
    """Structs of fixed-width children, row by row."""

    MESSAGE: ClassVar[str] = "packed_struct"

    def __init__(self, message: pb.PackedStruct, context: ArrayContext) -> None:
        arrow_type = context.arrow_type
        is_struct = pt.is_struct(arrow_type) and arrow_type.num_fields == len(message.inner)
        check(is_struct, f"{len(message.inner)} packed children in a column of {arrow_type}")
        self._arrow_type = arrow_type
        self._extent = context.buffer(message.buffer)
        self._widths = [_width_of(arrow_type.field(i).type) for i in range(arrow_type.num_fields)]
        needed = context.length * sum(self._widths)
        check(needed <= self._extent.size, f"{self._extent.size} bytes for {context.length} structs")

    @classmethod
    def from_pb(cls, message: pb.PackedStruct, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context)

    def read(self, rows: Rows) -> Steps[pa.Array]:
        stride = sum(self._widths)
        packed = yield from read_values(self._extent, stride * 8, rows)
        table = packed.data[: packed.size_bytes].reshape(rows.count, stride)
        children = []
        start = 0
        for index, width in enumerate(self._widths):
            data = np.ascontiguousarray(table[:, start : start + width]).reshape(-1)
            children.append(_child(FixedWidth(data, width * 8, rows.count), self._arrow_type.field(index).type))
            start += width
        return pa.Array.from_buffers(self._arrow_type, rows.count, [None], children=children)


def _width_of(child_type: pa.DataType) -> int:
    if pt.is_fixed_size_list(child_type):
        return int(child_type.list_size) * _width_of(child_type.value_type)
    bits = bits_per_value_of(child_type)
    if bits % 8:
        raise UnsupportedFeature(f"{child_type} in a packed struct of a 2.0 file")
    return bits // 8


def _child(values: FixedWidth, child_type: pa.DataType) -> pa.Array:
    if not pt.is_fixed_size_list(child_type):
        return array_of(values, child_type)
    size = child_type.list_size
    items = FixedWidth(values.data, values.bits_per_value // size, values.num_values * size)
    children = [_child(items, child_type.value_type)]
    return pa.Array.from_buffers(child_type, values.num_values, [None], children=children)
