"""Dictionary: positions in a list of distinct items.

If the column is a dictionary in Arrow, positions count from 0, and a null is the position of a null item. Otherwise
positions count from 1, and 0 is a null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.encodings import check
from lance_ops.file.arrow_values import take_items, validity_of
from lance_ops.file.page_reading import RowSelection, RowSlice, Steps
from lance_ops.file.v2_0.contract import ArrayContext, ArrayEncoding, ReadArray
from lance_ops.pb import encodings_v2_0_pb2 as pb

__all__ = ["Dictionary"]

_POSITION_TYPES = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


class Dictionary(ArrayEncoding):
    """Positions and items; it keeps the items once they are loaded."""

    MESSAGE: ClassVar[str] = "dictionary"

    def __init__(self, message: pb.Dictionary, context: ArrayContext, nested: ReadArray) -> None:
        self._arrow_type = context.arrow_type
        self._is_arrow = pt.is_dictionary(context.arrow_type)
        self._item_type = context.arrow_type.value_type if self._is_arrow else context.arrow_type
        position_type = _POSITION_TYPES.get(_position_bits(message.indices))
        if position_type is None:
            raise UnsupportedFeature("a dictionary whose positions are not stored as numbers")
        self._positions = nested(message.indices, replace(context, arrow_type=position_type))
        self._num_items = message.num_dictionary_items
        items = replace(context, arrow_type=self._item_type, length=self._num_items)
        self._item_encoding = nested(message.items, items)
        self._items: pa.Array | None = None
        self._stored_bytes = context.stored_bytes

    @classmethod
    def from_pb(cls, message: pb.Dictionary, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context, nested)

    def inner(self) -> Sequence[ArrayEncoding]:
        return (self._positions, self._item_encoding)

    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        items = self._items
        if items is None:
            items = pa.nulls(0, self._item_type)
            if self._num_items:
                items = yield from self._item_encoding.read(RowSlice(0, self._num_items))
            self._items = items
        positions = yield from self._positions.read(rows)
        check(positions.null_count == 0, "a position that is null")
        bounds = pc.min_max(positions).as_py()
        num_positions = len(items) if self._is_arrow else len(items) + 1
        check(bounds["max"] < num_positions, "a position beyond the dictionary")
        if self._is_arrow:
            return self._as_dictionary(positions, items)
        if not bounds["min"]:
            return take_items(pa.concat_arrays([pa.nulls(1, items.type), items]), positions, self._stored_bytes)
        return take_items(items, pc.subtract(positions, pa.scalar(1, positions.type)), self._stored_bytes)

    def _as_dictionary(self, positions: pa.Array, items: pa.Array) -> pa.Array:
        """Return an Arrow dictionary with null keys: Arrow cannot concatenate dictionaries with null entries."""
        present = validity_of(items)
        keys = positions
        if present is not None:
            found = positions.to_numpy()
            keys = pa.array((np.cumsum(present) - 1)[found].clip(min=0), mask=~present[found])
            items = items.drop_null()
        keys = keys.cast(self._arrow_type.index_type)
        return pa.DictionaryArray.from_arrays(keys, items, ordered=self._arrow_type.ordered)


def _position_bits(described: pb.ArrayEncoding) -> int:
    """Return the bits of a position, from the innermost description; 0 if it is not one of numbers."""
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
