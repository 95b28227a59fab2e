"""The primary keys that a transaction inserts; they show whether two writers insert the same key.

On the wire they are a set of hashes, or a split block Bloom filter of 1024 blocks. Each block is eight 32-bit words,
and a key sets one bit in each word of one block. The hash is xxHash64 of the key's bytes; its high half chooses the
block, its low half, multiplied by a constant for each word, the bits (https://parquet.apache.org/docs/file-format/bloomfilter).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint32Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2

__all__ = ["InsertedKeys"]


_BLOCKS = 1024
_WORDS = 8
_NUM_ITEMS = 8192  # the filter declares this capacity, at the false positive probability below
_PROBABILITY = 0.00057
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)


@dataclass(frozen=True, slots=True)
class InsertedKeys:
    """Keys of the given fields, as the set of their hashes or as a Bloom filter."""

    field_ids: tuple[int, ...]
    hashes: frozenset[int] | None = None
    bloom: bytes | None = None

    @classmethod
    def from_hashes(cls, field_ids: tuple[int, ...], hashes: Uint64Array) -> Self:
        """Build a filter of the keys with these hashes, in the size that the reference uses."""
        words = np.zeros((_BLOCKS, _WORDS), np.uint32)
        np.bitwise_or.at(words, _block_of(hashes, _BLOCKS), _bits_of(hashes))
        return cls(field_ids, bloom=words.astype("<u4").tobytes())

    @classmethod
    def join(cls, parts: Sequence[InsertedKeys]) -> InsertedKeys:
        """Return a filter of the keys of all parts, which have the same fields and are of `from_hashes`."""
        words = [np.frombuffer(part.bloom or b"", "<u4") for part in parts]
        return replace(parts[0], bloom=np.bitwise_or.reduce(words).astype("<u4").tobytes())

    @classmethod
    def join_encoded(cls, parts: Sequence[bytes]) -> bytes:
        """Return the wire message of a filter of the keys of all parts, which are wire messages; see `join`."""
        return cls.join([cls.decode(part) for part in parts]).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read the wire message."""
        message = transaction_pb2.Transaction.KeyExistenceFilter.FromString(data)
        which = message.WhichOneof("data")
        return cls(
            tuple(message.field_ids),
            frozenset(message.exact.key_hashes) if which == "exact" else None,
            message.bloom.bitmap if which == "bloom" else None,
        )

    def encode(self) -> bytes:
        """Return the wire message."""
        message = transaction_pb2.Transaction.KeyExistenceFilter(field_ids=self.field_ids)
        if self.hashes is not None:
            message.exact.key_hashes.extend(sorted(self.hashes))
        elif self.bloom is not None:
            message.bloom.bitmap = self.bloom
            message.bloom.num_bits = 8 * len(self.bloom)
            message.bloom.number_of_items = _NUM_ITEMS
            message.bloom.probability = _PROBABILITY
        return message.SerializeToString(deterministic=True)

    @property
    def is_empty(self) -> bool:
        """Whether it is certain that the transaction inserted no key; False without hashes and without a filter."""
        if self.hashes is not None:
            return not self.hashes
        return bool(self.bloom and not self.bloom.strip(b"\0"))

    def may_share_a_key(self, other: InsertedKeys) -> bool:
        """Return whether both may have inserted the same key; true if the two cannot be compared."""
        if self.field_ids != other.field_ids:
            return True
        if self.hashes is not None and other.hashes is not None:
            return not self.hashes.isdisjoint(other.hashes)
        mine, theirs = self._words(), other._words()
        if mine is None or theirs is None or mine.shape != theirs.shape:
            return True
        return bool(((mine & theirs) != 0).all(axis=1).any())

    def _words(self) -> Uint32Array | None:
        if self.hashes is not None:
            return InsertedKeys.from_hashes(self.field_ids, np.array(sorted(self.hashes), np.uint64))._words()
        if self.bloom is None or len(self.bloom) % (4 * _WORDS):
            return None
        return np.frombuffer(self.bloom, "<u4").reshape(-1, _WORDS)


def _block_of(hashes: Uint64Array, num_blocks: int) -> Int64Array:
    return (((hashes >> np.uint64(32)) * np.uint64(num_blocks)) >> np.uint64(32)).astype(np.int64)


def _bits_of(hashes: Uint64Array) -> Uint32Array:
    low = hashes.astype(np.uint32)
    bit_positions = (low[:, None] * _SALT[None, :]) >> np.uint32(27)
    bits: Uint32Array = np.left_shift(np.uint32(1), bit_positions)
    return bits
