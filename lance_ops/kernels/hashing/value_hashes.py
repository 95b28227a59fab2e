"""64-bit hashes of byte ranges, for finding equal values. The hashes are never stored."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint64Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.unaligned import load_word

__all__ = ["first_words", "hash_values"]

_MULTIPLIER = 0x9E3779B97F4A7C15
_OTHER_MULTIPLIER = 0xD6E8FEB86659FD93
_ONES = 0xFFFFFFFFFFFFFFFF


@part
def _mix(state: np.uint64, word: np.uint64) -> np.uint64:
    state = (state ^ word) * np.uint64(_MULTIPLIER)
    return state ^ (state >> np.uint64(32))


@part
def first_words(data: Uint8Array, start: int, size: int) -> tuple[np.uint64, np.uint64]:
    """Return the first sixteen bytes of a range as two words, with zeros after its end."""
    low, high = np.uint64(0), np.uint64(0)
    if start + 16 <= len(data):
        # no branch on the size: the processor would mispredict it for every other string
        low, high = load_word(data, start), load_word(data, start + 8)
        low &= np.uint64(_ONES) if size >= 8 else (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
        rest = np.uint64(8 * max(size - 8, 0))
        high &= np.uint64(_ONES) if size >= 16 else (np.uint64(1) << rest) - np.uint64(1)
    else:
        for byte in range(min(size, 8)):
            low |= np.uint64(data[start + byte]) << np.uint64(8 * byte)
        for byte in range(8, min(size, 16)):
            high |= np.uint64(data[start + byte]) << np.uint64(8 * byte - 64)
    return low, high


@part
def hash_bytes(data: Uint8Array, start: int, size: int) -> np.uint64:
    """Return a hash of `size` bytes that lie in the array."""
    low, high = first_words(data, start, size)
    state = (low ^ np.uint64(size)) * np.uint64(_MULTIPLIER) ^ (high + np.uint64(size)) * np.uint64(_OTHER_MULTIPLIER)
    state ^= state >> np.uint64(32)
    if size > 16:
        for place in range(start + 16, start + size - 8, 8):
            state = _mix(state, load_word(data, place))
        state = _mix(state, load_word(data, start + size - 8))
    return state


@kernel
def hash_values(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    end_bytes: int,
    hashes: Uint64Array,
) -> None:
    """Hash byte ranges that lie in `data`.

    Of a range longer than `2 * end_bytes`, only its length and `end_bytes` bytes from each end are hashed.
    """
    for i in range(len(starts)):
        start, size = starts[i], sizes[i]
        if size <= 2 * end_bytes:
            hashes[i] = hash_bytes(data, start, size)
        else:
            tail = hash_bytes(data, start + size - end_bytes, end_bytes)
            hashes[i] = _mix(hash_bytes(data, start, end_bytes) ^ np.uint64(size), tail)
