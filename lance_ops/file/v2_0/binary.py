"""Encodings of byte strings in 2.0 pages: with offsets, as FSST codes, or with one width for all.

binary               offsets (see `stored_offsets`) | bytes
fsst                 a binary of codes; the symbol table is in the description
fixed_size_binary    bytes only; all strings have the same size
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray
from lance_ops.encodings import (
    NO_OPTIONS,
    EncodingOptions,
    FixedWidth,
    FsstEncoding,
    VariableEncoding,
    VariableWidth,
    check,
    check_expansion,
    offsets_of_lengths,
    select,
)
from lance_ops.file.arrow_values import array_of, with_empty_slots
from lance_ops.file.page_reading import RowSelection, RowSlice, Steps
from lance_ops.file.v2_0.contract import ArrayContext, ArrayEncoding, PageBuffers, ReadArray
from lance_ops.file.v2_0.fixed import Flat, encode_compressed, encode_flat
from lance_ops.file.v2_0.stored_offsets import encode_offsets, read_offsets, read_spans
from lance_ops.pb import encodings_v2_0_pb2 as pb

__all__ = ["Binary", "FixedSizeBinary", "Fsst", "encode_binary"]


_MAX_BYTES = 1 << 62


class Binary(ArrayEncoding):
    """Byte strings with offsets."""

    MESSAGE: ClassVar[str] = "binary"

    def __init__(self, message: pb.Binary, context: ArrayContext, nested: ReadArray) -> None:
        self._arrow_type = context.arrow_type
        self._offsets = nested(message.indices, replace(context, arrow_type=pa.uint64()))
        self._null_adjustment = message.null_adjustment
        data = nested(message.bytes, replace(context, arrow_type=pa.uint8(), length=0))
        if not isinstance(data, Flat):
            raise UnsupportedFeature(f"the bytes of strings in the {data.MESSAGE} encoding")
        self._data = data

    @classmethod
    def from_pb(cls, message: pb.Binary, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context, nested)

    def inner(self) -> Sequence[ArrayEncoding]:
        return (self._offsets, self._data)

    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        values, validity = yield from self.read_values(rows)
        return array_of(values, self._arrow_type, validity)

    def read_values(self, rows: RowSelection) -> Steps[tuple[VariableWidth, BoolArray | None]]:
        """Read byte strings, and which of them are not null; the bytes of consecutive strings are not copied."""
        if isinstance(rows, RowSlice):
            first, offsets, validity = yield from read_offsets(self._offsets, rows, self._null_adjustment)
            data = yield from self._data.read_bytes(first, first + int(offsets[-1]))
            return VariableWidth(offsets, data), validity
        starts, ends, validity = yield from read_spans(self._offsets, rows, self._null_adjustment)
        sizes = ends - starts
        data = yield from self._data.gather_bytes(starts, sizes)
        return VariableWidth(offsets_of_lengths(sizes, 32), data), validity


class Fsst(ArrayEncoding):
    """Byte strings as FSST codes."""

    MESSAGE: ClassVar[str] = "fsst"

    def __init__(self, message: pb.Fsst, context: ArrayContext, nested: ReadArray) -> None:
        self._arrow_type = context.arrow_type
        codes = nested(message.binary, context)
        if not isinstance(codes, Binary):
            raise UnsupportedFeature(f"FSST codes in the {codes.MESSAGE} encoding")
        self._codes = codes
        self._decoder = FsstEncoding(message.symbol_table, VariableEncoding(64))

    @classmethod
    def from_pb(cls, message: pb.Fsst, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context, nested)

    def inner(self) -> Sequence[ArrayEncoding]:
        return (self._codes,)

    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        codes, validity = yield from self._codes.read_values(rows)
        offsets = codes.offsets.astype(np.int64)
        values = self._decoder.decode_zipped(codes.data, offsets[:-1], np.diff(offsets))
        return array_of(values, self._arrow_type, validity)


class FixedSizeBinary(ArrayEncoding):
    """Byte strings of one size."""

    MESSAGE: ClassVar[str] = "fixed_size_binary"

    def __init__(self, message: pb.FixedSizeBinary, context: ArrayContext, nested: ReadArray) -> None:
        self._arrow_type = context.arrow_type
        self._width = message.byte_width
        self._stored_bytes = context.stored_bytes
        check(self._width * context.length < _MAX_BYTES, f"strings of {self._width} bytes")
        self._data = nested(message.bytes, replace(context, arrow_type=pa.uint8(), length=self._width * context.length))

    @classmethod
    def from_pb(cls, message: pb.FixedSizeBinary, context: ArrayContext, nested: ReadArray) -> Self:
        return cls(message, context, nested)

    def inner(self) -> Sequence[ArrayEncoding]:
        return (self._data,)

    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        check_expansion(rows.count * self._width, self._stored_bytes, "strings of one size")
        offsets = np.arange(rows.count + 1, dtype=np.int64) * self._width
        if not self._width:
            return array_of(VariableWidth(offsets, np.empty(0, np.uint8)), self._arrow_type)
        data = yield from self._data.read(rows.scaled(self._width))
        return array_of(VariableWidth(offsets, data.to_numpy()), self._arrow_type)


def encode_binary(
    values: VariableWidth, validity: BoolArray | None, options: EncodingOptions, buffers: PageBuffers
) -> pb.ArrayEncoding:
    """Encode byte strings with offsets; the options may ask for FSST or for compression of the bytes."""
    if validity is not None:
        values = _without_nulls(values, validity)
    if options.compression == "fsst" and values.size_bytes:
        coded, _ = FsstEncoding.train(values)
        codes = coded.encode_zipped(values)
        assert isinstance(codes, VariableWidth)
        inner = _encode_plain(codes, validity, NO_OPTIONS, buffers)
        return pb.ArrayEncoding(fsst=pb.Fsst(binary=inner, symbol_table=coded.symbol_table))
    return _encode_plain(values, validity, options, buffers)


def _encode_plain(
    values: VariableWidth, validity: BoolArray | None, options: EncodingOptions, buffers: PageBuffers
) -> pb.ArrayEncoding:
    offsets, adjustment = encode_offsets(values.offsets[1:], values.size_bytes, validity, buffers)
    data = values.data[: values.size_bytes]
    if options.compression in ("zstd", "lz4"):
        stored = encode_compressed(data, options.compression, options.compression_level, buffers)
    else:
        stored = encode_flat(FixedWidth(data, 8, len(data)), buffers)
    return pb.ArrayEncoding(binary=pb.Binary(indices=offsets, bytes=stored, null_adjustment=adjustment))


def _without_nulls(values: VariableWidth, validity: BoolArray) -> VariableWidth:
    """Drop the bytes under nulls."""
    if not values.lengths()[~validity].any():
        return values
    kept = select(values, np.flatnonzero(validity))
    assert isinstance(kept, VariableWidth)
    with_nulls = with_empty_slots(kept, validity)
    assert isinstance(with_nulls, VariableWidth)
    return with_nulls
