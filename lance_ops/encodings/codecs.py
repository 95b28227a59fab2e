"""Compress and decompress many buffers with LZ4 or zstd; the raw size stands in front of each buffer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa

from lance_ops import kernels
from lance_ops.core.arrow import new_bytes
from lance_ops.core.errors import ReadTooLarge, UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.contract import CorruptValues, check
from lance_ops.encodings.expansion import FREE_BYTES, MAX_RATIO, check_expansion
from lance_ops.encodings.page_values import gather_ranges
from lance_ops.kernels import read_only
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["Codec", "Lz4", "Zstd", "codec_of_scheme"]

# The zstd library's default; pyarrow's is 1.
_ZSTD_LEVEL = 3

_FEW_BLOCKS, _FEW_BYTES = 4, 1 << 20
"""Arrow decompresses so little LZ4 sooner than a process loads the kernel, although it does so twice for each block."""


class Codec(ABC):
    """A general codec; `level` is the level in the description, or None if it states none."""

    scheme: ClassVar[pb.CompressionScheme]
    size_bytes: ClassVar[int]
    """The width of the raw size in front of each buffer."""
    max_ratio: ClassVar[int]
    """A well-formed buffer decompresses to at most this many times its size."""

    level: int | None

    def decompress(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> tuple[Uint8Array, Int64Array]:
        """Return the raw bytes of all ranges end to end, and the raw size of each."""
        raise NotImplementedError

    def compress(self, data: Uint8Array, sizes: Int64Array) -> tuple[Uint8Array, Int64Array]:
        """Compress consecutive buffers of the given sizes; return them end to end, and the size of each."""
        codec = self._codec()
        parts: list[bytes] = []
        start = 0
        for size in sizes.tolist():
            parts.append(size.to_bytes(self.size_bytes, "little"))
            parts.append(codec.compress(data[start : start + size], asbytes=True))
            start += size
        lengths = np.array([len(part) for part in parts], np.int64).reshape(-1, 2).sum(axis=1)
        return np.frombuffer(b"".join(parts), np.uint8), lengths

    @abstractmethod
    def _codec(self) -> pa.Codec: ...

    def _raw_sizes(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> Int64Array:
        """Read the raw size in front of each range; refuse a size that the range's bytes cannot decompress to."""
        check(len(sizes) == 0 or sizes.min() >= self.size_bytes, "a compressed buffer has no raw size")
        heads = gather_ranges(data, starts, np.full(len(starts), self.size_bytes, np.int64))
        raw = np.ascontiguousarray(heads).view(f"<u{self.size_bytes}")
        bound = (sizes * self.max_ratio + 1024).astype(np.uint64)
        check((raw <= bound).all(), "a compressed buffer claims more raw bytes than it can hold")
        raw_sizes = raw.astype(np.int64)
        check_expansion(int(raw_sizes.sum()), int(sizes.sum()), "compressed buffers")
        return raw_sizes


@dataclass(frozen=True)
class Lz4(Codec):
    """LZ4 blocks."""

    scheme: ClassVar[pb.CompressionScheme] = pb.COMPRESSION_ALGORITHM_LZ4
    size_bytes: ClassVar[int] = 4
    max_ratio: ClassVar[int] = 255

    level: int | None = None

    def decompress(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> tuple[Uint8Array, Int64Array]:
        raw_sizes = self._raw_sizes(data, starts, sizes)
        places = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(raw_sizes, out=places[1:])
        out = new_bytes(int(places[-1]))
        are_few = len(sizes) <= _FEW_BLOCKS and len(out) <= _FEW_BYTES
        by_arrow = are_few or kernels.do_without_numba(len(out))
        if by_arrow and self._decompress_in_place(data, starts, sizes, out, places):
            return out, raw_sizes
        begin, size = read_only(starts + self.size_bytes), read_only(sizes - self.size_bytes)
        decoded = kernels.lz4_decode(read_only(data), begin, size, out, read_only(places))
        check(decoded == len(sizes), "a malformed LZ4 block")
        return out, raw_sizes

    def _decompress_in_place(
        self, data: Uint8Array, starts: Int64Array, sizes: Int64Array, out: Uint8Array, places: Int64Array
    ) -> bool:
        """Decompress by Arrow; return False for blocks that it refuses, or that are not as long as their places.

        Arrow does not tell how long a block was. It refuses a block that is longer than the room which it is given.
        """
        codec = self._codec()
        for start, size, (place, end) in zip(starts.tolist(), sizes.tolist(), pairwise(places.tolist()), strict=True):
            block = data[start + self.size_bytes : start + size]
            try:
                out[place:end] = np.frombuffer(codec.decompress(block, end - place), np.uint8)
            except (OSError, ValueError):
                return False
            with suppress(OSError, ValueError):  # the latter for a room of -1
                codec.decompress(block, end - place - 1)
                return False
        return True

    def _codec(self) -> pa.Codec:
        return pa.Codec("lz4_raw")


@dataclass(frozen=True)
class Zstd(Codec):
    """Zstandard frames; a level of 0 or none is the codec's own default."""

    scheme: ClassVar[pb.CompressionScheme] = pb.COMPRESSION_ALGORITHM_ZSTD
    size_bytes: ClassVar[int] = 8
    # a block of 128 KiB can be described in 4 bytes
    max_ratio: ClassVar[int] = 32 * 1024

    level: int | None = None

    def decompress(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> tuple[Uint8Array, Int64Array]:
        check(len(sizes) == 0 or sizes.min() >= self.size_bytes, "a compressed buffer has no raw size")
        bare = _are_bare_frames(data, starts)
        if bare.any():
            return self._decompress_bare(data, starts, sizes, bare)
        raw_sizes = self._raw_sizes(data, starts, sizes)
        out = new_bytes(int(raw_sizes.sum()))
        codec, place = self._codec(), 0
        for start, size, raw_size in zip(starts.tolist(), sizes.tolist(), raw_sizes.tolist(), strict=True):
            out[place : place + raw_size] = _inflate(codec, data[start + self.size_bytes : start + size], raw_size)
            place += raw_size
        return out, raw_sizes

    def _decompress_bare(
        self, data: Uint8Array, starts: Int64Array, sizes: Int64Array, bare: BoolArray
    ) -> tuple[Uint8Array, Int64Array]:
        parts: list[Uint8Array] = []
        left = total = max(FREE_BYTES, MAX_RATIO * int(sizes.sum()))
        for start, size, alone in zip(starts.tolist(), sizes.tolist(), bare.tolist(), strict=True):
            if alone:
                parts.append(_inflate_unsized(data[start : start + size], left))
            else:
                parts.append(self.decompress(data, np.array([start]), np.array([size]))[0])
            left -= len(parts[-1])
            if left < 0:
                raise ReadTooLarge(f"more than {total} bytes at once of compressed frames (read fewer rows at a time)")
        return np.concatenate(parts), np.array([len(part) for part in parts], np.int64)

    def _codec(self) -> pa.Codec:
        return pa.Codec("zstd", compression_level=self.level or _ZSTD_LEVEL)


def codec_of_scheme(scheme: pb.CompressionScheme, level: int | None) -> Codec:
    """Return the codec of a description."""
    for codec in (Lz4, Zstd):
        if codec.scheme == scheme:
            return codec(level)
    raise UnsupportedFeature(f"compression scheme {scheme}")


def _are_bare_frames(data: Uint8Array, starts: Int64Array) -> BoolArray:
    """Return whether the buffers are zstd frames without raw sizes in front.

    They are if they begin with the frame's magic number, since a raw size with these bytes would be absurdly large.
    """
    heads = gather_ranges(data, starts, np.full(len(starts), 4, np.int64))
    bare: BoolArray = np.ascontiguousarray(heads).view("<u4") == 0xFD2FB528
    return bare


def _inflate(codec: pa.Codec, frame: Uint8Array, raw_size: int) -> Uint8Array:
    if raw_size == 0:
        return np.empty(0, np.uint8)
    try:
        return np.frombuffer(codec.decompress(frame, raw_size), np.uint8)
    except (OSError, ValueError) as error:
        raise CorruptValues(f"a malformed zstd frame: {error}") from error


def _inflate_unsized(frame: Uint8Array, limit: int) -> Uint8Array:
    try:
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(frame)), "zstd") as stream:
            raw = stream.read(limit + 1)
    except (OSError, ValueError) as error:
        raise CorruptValues(f"a malformed zstd frame: {error}") from error
    if len(raw) > limit:
        raise ReadTooLarge(f"more than {limit} bytes at once of a zstd frame (read fewer rows at a time)")
    return np.frombuffer(raw, np.uint8)
