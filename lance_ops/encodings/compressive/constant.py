"""Constant: one fixed-width value, stored in the description. The page has no buffers and no bytes for it.

A description without a value means that all items are null; such values have zero bits.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.chunking import even_chunks
from lance_ops.encodings.contract import (
    DEFAULT_LIMITS,
    ChunkBuffers,
    ChunkLimits,
    EncodedChunks,
    Encoding,
    ReadNested,
    check,
)
from lance_ops.encodings.expansion import check_expansion
from lance_ops.encodings.page_values import (
    FixedWidth,
    Values,
)
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["ConstantEncoding"]


@dataclass(frozen=True)
class ConstantEncoding(Encoding):
    """Every value equals `value` (little-endian bytes); None means that all items are null."""

    MESSAGE: ClassVar[str] = "constant"

    value: bytes

    @classmethod
    def from_pb(cls, message: pb.Constant, nested: ReadNested) -> Self:
        return cls(message.value)

    def to_pb(self) -> pb.CompressiveEncoding:
        return pb.CompressiveEncoding(constant=pb.Constant(value=self.value or None))

    @property
    def num_buffers(self) -> int:
        return 0

    def decode_chunks(self, chunks: ChunkBuffers) -> FixedWidth:
        chunks.expect_buffers(0)
        return self._repeat(chunks.total_values)

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        self._expect(values)
        return EncodedChunks(even_chunks(values.num_values, limits.max_values), (), ())

    def decode_block(self, data: Uint8Array, num_values: int) -> FixedWidth:
        check(len(data) == 0, "a constant block has bytes")
        return self._repeat(num_values)

    def encode_block(self, values: Values) -> Uint8Array:
        self._expect(values)
        return np.empty(0, np.uint8)

    def decode_zipped(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> FixedWidth:
        check((sizes == 0).all(), "a constant zipped value has bytes")
        return self._repeat(len(starts))

    def encode_zipped(self, values: Values) -> FixedWidth:
        self._expect(values)
        return FixedWidth(np.empty(0, np.uint8), 0, values.num_values)

    def _repeat(self, num_values: int) -> FixedWidth:
        # values without bytes have no other bound on their number
        check_expansion(num_values * len(self.value), len(self.value), "copies of a constant")
        data = np.tile(np.frombuffer(self.value, np.uint8), num_values)
        return FixedWidth(data, 8 * len(self.value), num_values)

    def _expect(self, values: Values) -> None:
        if not isinstance(values, FixedWidth) or values.bits_per_value != 8 * len(self.value):
            raise TypeError(f"constant of {len(self.value)} bytes for {type(values).__name__}")
        rows = values.data[: values.size_bytes].reshape(values.num_values, len(self.value))
        if (rows != np.frombuffer(self.value, np.uint8)).any():
            raise ValueError("values that differ from the constant")
