"""Packed struct: structs of fixed-width children, row by row.

    chunk, zipped    child 0 of row 0 | child 1 of row 0 | ... | child 0 of row 1 | ...

A child that is a fixed-size list is decoded as one wide value with the same bytes.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
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
    FixedWidth,
    PackedValues,
    Values,
)
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["PackedStructEncoding"]


@dataclass(frozen=True)
class PackedStructEncoding(Encoding):
    """Structs whose children take `bits_per_child` bits each, all multiples of 8."""

    MESSAGE: ClassVar[str] = "packed_struct"

    bits_per_child: tuple[int, ...]

    @classmethod
    def from_pb(cls, message: pb.PackedStruct, nested: ReadNested) -> Self:
        rows = nested(message.values)
        bits = tuple(message.bits_per_value)
        if not isinstance(rows, FlatEncoding) or any(width % 8 for width in bits):
            raise UnsupportedFeature("packed structs of other than flat children of whole bytes")
        check(len(bits) > 0 and min(bits) > 0, "a packed struct without children")
        check(sum(bits) == rows.bits_per_value, "a packed struct's row is not as wide as its children")
        return cls(bits)

    def to_pb(self) -> pb.CompressiveEncoding:
        described = pb.PackedStruct(bits_per_value=self.bits_per_child, values=self._rows.to_pb())
        return pb.CompressiveEncoding(packed_struct=described)

    @property
    def _rows(self) -> FlatEncoding:
        return FlatEncoding(sum(self.bits_per_child))

    def decode_chunks(self, chunks: ChunkBuffers) -> PackedValues:
        return self._unpack(self._rows.decode_chunks(chunks))

    def pick_chunks(self, chunks: ChunkBuffers, picks: Picks) -> PackedValues:
        return self._unpack(self._rows.pick_chunks(chunks, picks))

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        return self._rows.encode_chunks(self._pack(values), limits)

    def decode_zipped(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> PackedValues:
        return self._unpack(self._rows.decode_zipped(data, starts, sizes))

    def encode_zipped(self, values: Values) -> FixedWidth:
        return self._pack(values)

    def _unpack(self, rows: FixedWidth) -> PackedValues:
        table = rows.data.reshape(rows.num_values, rows.bits_per_value // 8)
        columns = np.split(table, np.cumsum(self.bits_per_child)[:-1] // 8, axis=1)
        return PackedValues(
            tuple(
                FixedWidth(np.ascontiguousarray(column).reshape(-1), bits, rows.num_values)
                for column, bits in zip(columns, self.bits_per_child, strict=True)
            )
        )

    def _pack(self, values: Values) -> FixedWidth:
        if not isinstance(values, PackedValues):
            raise TypeError(f"packed struct encoding of {type(values).__name__}")
        columns = []
        for child, bits in zip(values.children, self.bits_per_child, strict=True):
            if not isinstance(child, FixedWidth) or child.bits_per_value != bits:
                raise TypeError("a packed struct's child is not as wide as its encoding says")
            columns.append(child.data[: child.size_bytes].reshape(child.num_values, bits // 8))
        rows = np.concatenate(columns, axis=1)
        return FixedWidth(rows.reshape(-1), sum(self.bits_per_child), values.num_values)
