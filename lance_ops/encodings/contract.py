"""The interface of a compressive encoding of 2.1 and 2.2 pages. A page uses an encoding in three places:

* A *mini-block chunk* holds a few values in `num_buffers` separate buffers. All wanted chunks of a page are decoded in
  one call, so Python's overhead is paid once a page.
* A *block* is one opaque buffer: the levels of one chunk, or a dictionary.
* A *zipped* value stands alone in a full-zip page: a byte range holds exactly one value.

Descriptions and buffers come from files that may be corrupt or hostile. An encoding raises `CorruptValues`, and the
file reader turns it into `CorruptFile` with the file's name. `UnsupportedFeature` is raised for what the format allows
and this library does not read or write.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.page_values import (
    FixedWidth,
    Values,
    VariableWidth,
    concat_values,
    select,
)
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = [
    "DEFAULT_LIMITS",
    "MAX_CHUNK_VALUES",
    "ChunkBuffers",
    "ChunkLimits",
    "CorruptValues",
    "EncodedChunks",
    "Encoding",
    "Picks",
    "ReadNested",
    "check",
]

MAX_CHUNK_VALUES = 4096


class CorruptValues(ValueError):
    """Bytes contradict their description. The message says how; the caller adds the file and the place."""


def check(condition: bool | np.bool_, reason: str) -> None:
    """Raise `CorruptValues` unless the condition holds."""
    if not condition:
        raise CorruptValues(reason)


@dataclass(frozen=True, eq=False)
class ChunkBuffers:
    """Some chunks of one page buffer: `starts[b][c]` and `sizes[b][c]` locate buffer `b` of chunk `c` in `data`.

    The constructor checks that every range lies in `data`, and decoders rely on that. A caller that has checked the
    ranges itself passes `located`.
    """

    data: Uint8Array
    starts: tuple[Int64Array, ...]
    sizes: tuple[Int64Array, ...]
    num_values: Int64Array
    located: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if self.located:
            return
        check(len(self.starts) == len(self.sizes), "a chunk has as many buffer starts as sizes")
        for starts, sizes in zip(self.starts, self.sizes, strict=True):
            check(len(starts) == len(sizes) == len(self.num_values), "every chunk has the same number of buffers")
            if len(starts):
                inside = (starts | sizes).min() >= 0 and (starts <= len(self.data) - sizes).all()
                check(inside, "a chunk's buffer ends beyond its page buffer")
        if len(self.num_values):
            check(self.num_values.min() >= 0, "a chunk has a negative number of values")

    @property
    def num_chunks(self) -> int:
        """The number of chunks."""
        return len(self.num_values)

    def slice(self, start: int, stop: int) -> ChunkBuffers:
        """Return some of the chunks."""
        starts, sizes = [tuple([part[start:stop] for part in parts]) for parts in (self.starts, self.sizes)]
        return ChunkBuffers(self.data, starts, sizes, self.num_values[start:stop], located=True)

    @property
    def total_values(self) -> int:
        """The number of values in all chunks."""
        return int(self.num_values.sum())

    def expect_buffers(self, num_buffers: int) -> None:
        """Raise `CorruptValues` unless each chunk has that many buffers."""
        check(len(self.starts) == num_buffers, f"{len(self.starts)} value buffers where the encoding has {num_buffers}")

    def buffer(self, index: int, chunk: int) -> Uint8Array:
        """Return one buffer of one chunk, without a copy."""
        start = int(self.starts[index][chunk])
        return self.data[start : start + int(self.sizes[index][chunk])]


@dataclass(frozen=True, eq=False)
class Picks:
    """Positions of wanted values: value `within[i]` of chunk `chunk_of[i]`, in ascending order."""

    chunk_of: Int64Array
    within: Int64Array

    @property
    def count(self) -> int:
        """The number of values."""
        return len(self.within)

    def slice(self, start: int, stop: int) -> Picks:
        """Return the picks in chunks `start` to `stop`; the result numbers chunks from `start`."""
        first, last = self.chunk_of.searchsorted((start, stop)).tolist()
        return Picks(self.chunk_of[first:last] - start, self.within[first:last])

    def positions(self, num_values: Int64Array) -> Int64Array:
        """Return the picks' positions among the values of all chunks; chunk `i` holds `num_values[i]` values."""
        first: Int64Array = np.cumsum(num_values) - num_values
        return first[self.chunk_of] + self.within


@dataclass(frozen=True, eq=False)
class EncodedChunks:
    """Encoded values: `data[b]` holds buffer `b` of all chunks end to end, `sizes[b][c]` bytes of it chunk `c`'s.

    Buffers are not padded; the layout pads them. All chunks but the last hold a power of two values.
    """

    num_values: Int64Array
    data: tuple[Uint8Array, ...]
    sizes: tuple[Int64Array, ...]

    @property
    def num_chunks(self) -> int:
        """The number of chunks."""
        return len(self.num_values)

    def starts(self, index: int) -> Int64Array:
        """Return where each chunk's buffer begins in `data[index]`."""
        return np.cumsum(self.sizes[index]) - self.sizes[index]


@dataclass(frozen=True)
class ChunkLimits:
    """Upper limits for the value buffers of one chunk, without padding, header and levels.

    `max_values` is a power of two.
    """

    max_values: int = MAX_CHUNK_VALUES
    max_bytes: int = 8 * 1024


DEFAULT_LIMITS = ChunkLimits()

ReadNested: TypeAlias = Callable[[pb.CompressiveEncoding], "Encoding"]


class Encoding(ABC):
    """A compressive encoding; an instance is a frozen dataclass of the parameters in the page's description."""

    MESSAGE: ClassVar[str]
    """The field of the message `CompressiveEncoding` that describes this encoding."""

    @classmethod
    @abstractmethod
    def from_pb(cls, message: Any, nested: ReadNested) -> Self:
        """Return the encoding that a message describes; `nested` reads the messages of inner encodings."""

    @abstractmethod
    def to_pb(self) -> pb.CompressiveEncoding:
        """Return the description as a `CompressiveEncoding` message."""

    @property
    def chunk_key(self) -> Hashable:
        """Encodings with equal keys have values of one form, in chunks with equal parts."""
        return self

    @property
    def num_buffers(self) -> int:
        """Value buffers of each mini-block chunk."""
        return 1

    def decode_chunks(self, chunks: ChunkBuffers) -> Values:
        """Return the values of all given chunks, in order."""
        raise self._unsupported("in mini-block pages")

    def pick_chunks(self, chunks: ChunkBuffers, picks: Picks) -> Values:
        """Return the picked values. Each given chunk holds at least one pick, and every pick lies in a given chunk."""
        return select(self.decode_chunks(chunks), picks.positions(chunks.num_values))

    def encode_chunks(self, values: Values, limits: ChunkLimits = DEFAULT_LIMITS) -> EncodedChunks:
        """Encode values in chunks within the limits; zero values make zero chunks."""
        raise self._unsupported("in mini-block pages")

    def decode_blocks(self, blocks: ChunkBuffers) -> Values:
        """Return the values of all given blocks, in order; a block has one buffer."""
        blocks.expect_buffers(1)
        parts = [self.decode_block(blocks.buffer(0, i), int(n)) for i, n in enumerate(blocks.num_values)]
        return concat_values(parts) if parts else self.decode_block(np.empty(0, np.uint8), 0)

    def pick_blocks(self, blocks: ChunkBuffers, picks: Picks) -> Values:
        """Return the picked values of the given blocks."""
        return select(self.decode_blocks(blocks), picks.positions(blocks.num_values))

    def encode_blocks(self, values: Values, num_values: Int64Array) -> EncodedChunks:
        """Encode consecutive runs of values, one block each; `num_values` are their lengths."""
        ends = np.cumsum(num_values)
        parts = [
            self.encode_block(values.slice(int(end - n), int(end))) for n, end in zip(num_values, ends, strict=True)
        ]
        return EncodedChunks(
            num_values, (_join(parts),), (np.fromiter((len(part) for part in parts), np.int64, len(parts)),)
        )

    def decode_block(self, data: Uint8Array, num_values: int) -> Values:
        """Return the values of one block."""
        raise self._unsupported("as a block")

    def encode_block(self, values: Values) -> Uint8Array:
        """Return all values as one block."""
        raise self._unsupported("as a block")

    def decode_zipped(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> Values:
        """Return the values of a full-zip page: one for each byte range. Entries without a value have no range."""
        raise self._unsupported("in full-zip pages")

    def encode_zipped(self, values: Values) -> FixedWidth | VariableWidth:
        """Encode every value on its own."""
        raise self._unsupported("in full-zip pages")

    def _unsupported(self, where: str) -> UnsupportedFeature:
        return UnsupportedFeature(f"the {self.MESSAGE} encoding {where}")


def _join(parts: Sequence[Uint8Array]) -> Uint8Array:
    return np.concatenate(parts) if parts else np.empty(0, np.uint8)
