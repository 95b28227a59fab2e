"""Dictionary: positions of values in a list of distinct ones.

In a column that is a dictionary in Arrow, positions count from 0 and a null is a position of a null item. Otherwise
they count from 1, and 0 is a null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.encodings.contract import check
from lance_ops.file.arrays import validity_of
from lance_ops.file.items import take_items
from lance_ops.file.rows import Rows, RowSlice
from lance_ops.file.source import Steps
from lance_ops.file.v2_0.contract import ArrayContext, ArrayEncoding, ReadArray
from lance_ops.pb import encodings_v2_0_pb2 as pb

__all__ = ["Dictionary"]

_POSITION_TYPES = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


class Dictionary(ArrayEncoding):
    """Positions and items; keeps the items once they are loaded."""

    MESSAGE: ClassVar[str] = "dictionary"

    def __init__(self, message: pb.Dictionary, context: ArrayContext, nested: ReadArray) -> None:
        self._arrow_type = context.arrow_type
        self._is_arrow = pt.is_dictionary(context.arrow_type)
        value_type = context.arrow_type.value_type if self._is_arrow else context.arrow_type
        position_type = _POSITION_TYPES.get(_position_bits(message.indices))
        if position_type is None:
            raise UnsupportedFeature("a dictionary whose positions are no plain numbers")
        self._positions = nested(message.indices, replace(context, arrow_type=position_type))
        self._num_items = message.num_dictionary_items
        items = replace(context, arrow_type=value_type, length=self._num_items)
        self._item_encoding = nested(message.items, items)
        self._items: pa.Array | None = None
        self._stored_bytes = sum(extent.size for extent in context.buffers)

    @classmethod
    def from_pb(cls, message: pb.Dictionary, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context, nested)

    def inner(self) -> Sequence[ArrayEncoding]:
        return (self._positions, self._item_encoding)

    def read(self, rows: Rows) -> Steps[pa.Array]:
        items = self._items
        if items is None:
            items = pa.nulls(0, self._arrow_type)
            if self._num_items:
                items = yield from self._item_encoding.read(RowSlice(0, self._num_items))
            self._items = items
        found = yield from self._positions.read(rows)
        check(found.null_count == 0, "a position that is null")
        positions = found.to_numpy(zero_copy_only=False).astype(np.int64)
        check(int(positions.min()) >= 0, "a position beyond the dictionary")  # 2^63 or more
        is_null = np.zeros(len(positions), np.bool_)
        if not self._is_arrow:
            is_null = positions == 0
            positions = np.maximum(positions - 1, 0)
        check(is_null.all() or int(positions[~is_null].max()) < len(items), "a position beyond the dictionary")
        present = validity_of(items)
        if self._is_arrow and present is not None:
            is_null = ~present[positions]
        masked = pa.array(positions, mask=is_null) if is_null.any() else pa.array(positions)
        if self._is_arrow:
            return pa.DictionaryArray.from_arrays(masked.cast(self._arrow_type.index_type), items)
        return take_items(items, masked, self._stored_bytes)


def _position_bits(described: pb.ArrayEncoding) -> int:
    """Return the width of positions: that of the numbers at the leaf."""
    while described.WhichOneof("array_encoding") == "nullable":
        kind = described.nullable.WhichOneof("nullability")
        if kind not in ("no_nulls", "some_nulls"):
            return 0
        described = getattr(described.nullable, kind).values
    match described.WhichOneof("array_encoding"):
        case "flat":
            return described.flat.bits_per_value
        case "bitpacked":
            return described.bitpacked.uncompressed_bits_per_value
        case "bitpacked_for_non_neg":
            return described.bitpacked_for_non_neg.uncompressed_bits_per_value
    return 0
