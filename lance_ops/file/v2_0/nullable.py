"""Nullable: values with a validity bitmap, values without nulls, or only nulls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Self, TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import BoolArray
from lance_ops.encodings import FixedWidth, check
from lance_ops.file.page_reading import RowSelection, Steps, combine_steps
from lance_ops.file.v2_0.contract import ArrayContext, ArrayEncoding, PageBuffers, ReadArray, with_validity
from lance_ops.file.v2_0.fixed import encode_flat
from lance_ops.pb import encodings_v2_0_pb2 as pb

__all__ = ["Nullable", "encode_nullable"]

EncodeValues: TypeAlias = Callable[[PageBuffers], pb.ArrayEncoding]


class Nullable(ArrayEncoding):
    """Values without nulls, with some nulls, or only nulls."""

    MESSAGE: ClassVar[str] = "nullable"

    def __init__(self, kind: str, arrow_type: pa.DataType, parts: Sequence[ArrayEncoding]) -> None:
        self._kind = kind
        self._arrow_type = arrow_type
        self._parts = parts

    @classmethod
    def from_pb(cls, message: pb.Nullable, context: ArrayContext, nested: ReadArray) -> Self:
        kind = message.WhichOneof("nullability")
        parts: list[ArrayEncoding] = []
        if kind == "no_nulls":
            parts = [nested(message.no_nulls.values, context)]
        elif kind == "some_nulls":
            flags = replace(context, arrow_type=pa.bool_())
            parts = [nested(message.some_nulls.values, context), nested(message.some_nulls.validity, flags)]
        check(kind is not None, "a nullable encoding that does not say which values are null")
        return cls(kind or "", context.arrow_type, parts)

    def inner(self) -> Sequence[ArrayEncoding]:
        return self._parts

    def encodings(self) -> list[str]:
        return [self._kind, *(name for part in self._parts for name in part.encodings())]

    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        if not self._parts:
            return pa.nulls(rows.count, self._arrow_type)
        if len(self._parts) == 1:
            return (yield from self._parts[0].read(rows))
        values, validity = yield from combine_steps([part.read(rows) for part in self._parts])
        check(validity.null_count == 0, "validity that is itself null")
        check(not values.null_count and not validity.null_count, "nulls inside nullable values")
        return with_validity(values, validity)


def encode_nullable(validity: BoolArray | None, values: EncodeValues, buffers: PageBuffers) -> pb.ArrayEncoding:
    """Encode validity as a bitmap if some values are null; `values` encodes the values."""
    if validity is None:
        return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values(buffers))))
    if not validity.any():
        return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))
    bits = FixedWidth(np.packbits(validity, bitorder="little"), 1, len(validity))
    flags = encode_flat(bits, buffers)
    some = pb.Nullable.SomeNull(validity=flags, values=values(buffers))
    return pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=some))
