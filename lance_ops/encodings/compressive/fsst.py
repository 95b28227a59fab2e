"""FSST: byte strings as codes of a table of up to 255 symbols that the description carries.

    chunk, zipped    as the inner variable encoding stores the codes

Table, 2312 bytes: header u64 | 8 bytes a symbol | one length byte a symbol | rest unused. The header's bytes, lowest
first: number of symbols, terminator, suffix limit, 1 when codes are in use and 0 when the bytes are stored as they
are, "TSSF".
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Self

import numpy as np
from numpy.lib.stride_tricks import as_strided

from lance_ops import kernels
from lance_ops.core.arrow import new_array, new_bytes
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, OffsetArray, Uint8Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.compressive.variable import VariableEncoding
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
    Values,
    VariableWidth,
    narrow_offsets,
)
from lance_ops.kernels import read_only
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["FsstEncoding"]

_TABLE_BYTES = 2312
_MAGIC = b"TSSF"
_MAX_SYMBOLS = 255
_MAX_I32 = np.iinfo(np.int32).max
_PIECE_BYTES = 256
_MIN_SAMPLE_BYTES, _MAX_SAMPLE_BYTES = 8 * 1024, 32 * 1024
_SAMPLE_SHARE = 4
"""A sample holds one in this many bytes, within these bounds. Learning a table costs more a byte than using it."""


@dataclass(frozen=True)
class FsstEncoding(Encoding):
    """Codes of `symbol_table`, stored as `values` says."""

    MESSAGE: ClassVar[str] = "fsst"

    symbol_table: bytes
    values: VariableEncoding

    @classmethod
    def from_pb(cls, message: pb.Fsst, nested: ReadNested) -> Self:
        values = nested(message.values)
        if not isinstance(values, VariableEncoding):
            raise UnsupportedFeature(f"FSST codes in the {values.MESSAGE} encoding")
        return cls(message.symbol_table, values)

    @property
    def chunk_key(self) -> Hashable:
        return type(self), self.values  # each page has its own symbol table

    @cached_property
    def _table(self) -> tuple[bool, Uint64Array, Int64Array]:
        """Whether codes are in use, and the symbol and length of each code; a length of 0 means no symbol."""
        return _read_table(self.symbol_table)

    def to_pb(self) -> pb.CompressiveEncoding:
        return pb.CompressiveEncoding(fsst=pb.Fsst(symbol_table=self.symbol_table, values=self.values.to_pb()))

    def decode_chunks(self, chunks: ChunkBuffers) -> VariableWidth:
        in_use, symbols, lengths = self._table
        if not in_use:
            return self.values.decode_chunks(chunks)
        starts, sizes = self.values.check_chunks(chunks)
        counts, width = read_only(chunks.num_values), self.values.bits_per_offset // 8
        out, offsets = _room(int(sizes.sum()), chunks.total_values, self.values.bits_per_offset)
        ends = np.empty(int(sizes.max(initial=0)) + 1, np.int64)
        decoded = kernels.fsst_decode_chunks(
            read_only(chunks.data), starts, sizes, counts, width, symbols, lengths, ends, out, offsets
        )
        check(decoded == chunks.num_chunks, "a chunk of malformed FSST codes, or of offsets out of order")
        return VariableWidth(narrow_offsets(offsets, self.values.bits_per_offset), out[: int(offsets[-1])])

    def pick_chunks(self, chunks: ChunkBuffers, picks: Picks) -> VariableWidth:
        return self.decode_zipped(chunks.data, *self.values.locate(chunks, picks))

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        return self.values.encode_chunks(self._encode(values), limits)

    def decode_zipped(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> VariableWidth:
        in_use, symbols, lengths = self._table
        if not in_use:
            return self.values.decode_zipped(data, starts, sizes)
        out, offsets = _room(int(sizes.sum()), len(starts), self.values.bits_per_offset)
        decoded = kernels.fsst_decode(
            read_only(data), read_only(starts), read_only(sizes), symbols, lengths, out, offsets
        )
        check(decoded == len(starts), "a value of malformed FSST codes")
        return VariableWidth(narrow_offsets(offsets, self.values.bits_per_offset), out[: int(offsets[-1])])

    def encode_zipped(self, values: Values) -> VariableWidth:
        return self.values.encode_zipped(self._encode(values))

    @classmethod
    def train(cls, values: VariableWidth) -> tuple[Self, float]:
        """Learn a symbol table from a sample of the values; return it with the share of the sample that remains."""
        sample = _sample(values)
        symbols, lengths = np.zeros(_MAX_SYMBOLS, np.uint64), np.zeros(_MAX_SYMBOLS, np.int64)
        offsets = read_only(sample.offsets.astype(np.int64, copy=False))
        data = read_only(sample.data[: sample.size_bytes])
        num_symbols, num_codes = kernels.fsst_train(data, offsets, symbols, lengths)
        table = _write_table(symbols[:num_symbols], lengths[:num_symbols])
        return cls(table, VariableEncoding(values.bits_per_offset)), num_codes / max(sample.size_bytes, 1)

    def _encode(self, values: Values) -> VariableWidth:
        if not isinstance(values, VariableWidth):
            raise TypeError(f"FSST of {type(values).__name__}")
        in_use, symbols, lengths = self._table
        if not in_use:
            return values
        out, offsets = new_bytes(2 * values.size_bytes + 32), new_array(values.num_values + 1, np.int64)
        value_offsets = read_only(values.offsets.astype(np.int64, copy=False))
        codes, code_lengths = read_only(symbols[:_MAX_SYMBOLS]), read_only(lengths[:_MAX_SYMBOLS])
        kernels.fsst_encode(read_only(values.data), value_offsets, codes, code_lengths, out, offsets)
        return VariableWidth(narrow_offsets(offsets, self.values.bits_per_offset), out[: int(offsets[-1])])


def _room(num_codes: int, num_values: int, bits_per_offset: int) -> tuple[Uint8Array, OffsetArray]:
    """Return arrays for the bytes of codes and for their offsets, 64 bits wide where 32 could not count the bytes.

    The operating system gives memory only to the parts that are written.
    """
    out = new_bytes(8 * num_codes + 8)
    if bits_per_offset == 32 and len(out) <= _MAX_I32:
        return out, new_array(num_values + 1, np.int32)
    return out, new_array(num_values + 1, np.int64)


def _sample(values: VariableWidth) -> VariableWidth:
    """Return runs of values spread over the page, a few KiB to some tens of KiB in all; a long value is cut."""
    size = min(max(values.size_bytes // _SAMPLE_SHARE, _MIN_SAMPLE_BYTES), _MAX_SAMPLE_BYTES)
    if values.size_bytes <= size:
        return values
    num_pieces = size // _PIECE_BYTES
    begins = np.arange(num_pieces) * (values.size_bytes - _PIECE_BYTES) // (num_pieces - 1)
    every_piece = as_strided(values.data, (values.size_bytes - _PIECE_BYTES + 1, _PIECE_BYTES), (1, 1))
    edges = np.stack((begins + 1, begins + _PIECE_BYTES)).astype(
        values.offsets.dtype
    )  # else numpy converts all offsets
    firsts, ends = np.searchsorted(values.offsets, edges)
    # A piece is cut at its own start, which may lie within a value, and where each further value begins.
    counts = ends - firsts + 1
    piece_of = np.repeat(np.arange(num_pieces), counts)
    places = np.arange(len(piece_of)) + np.repeat(ends - np.cumsum(counts), counts)
    inside = np.maximum(values.offsets[places] - begins[piece_of], 0)
    offsets = np.append(inside + piece_of * _PIECE_BYTES, num_pieces * _PIECE_BYTES)
    return VariableWidth(offsets, every_piece[begins].reshape(-1))


def _write_table(symbols: Uint64Array, lengths: Int64Array) -> bytes:
    num_symbols = len(symbols)
    # decoders use neither the terminator nor the suffix limit
    header = bytes([num_symbols, 0, num_symbols, 1]) + _MAGIC
    table = header + symbols.astype("<u8").tobytes() + lengths.astype(np.uint8).tobytes()
    return table.ljust(_TABLE_BYTES, b"\0")


def _read_table(table: bytes) -> tuple[bool, Uint64Array, Int64Array]:
    check(len(table) >= 8 and table[4:8] == _MAGIC, "an FSST symbol table without its magic number")
    num_symbols, in_use = table[0], table[3] & 1
    check(len(table) >= 8 + num_symbols * 9, "an FSST symbol table shorter than its symbols")
    symbols, lengths = np.zeros(256, np.uint64), np.zeros(256, np.int64)
    symbols[:num_symbols] = np.frombuffer(table, "<u8", num_symbols, 8)
    lengths[:num_symbols] = np.frombuffer(table, np.uint8, num_symbols, 8 + num_symbols * 8)
    check(num_symbols == 0 or (lengths[:num_symbols].min() >= 1 and lengths.max() <= 8), "an FSST symbol of no length")
    return bool(in_use), read_only(symbols), read_only(lengths)
