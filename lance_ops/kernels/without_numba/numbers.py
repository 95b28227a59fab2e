"""Read little-endian numbers at any bytes of an array."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint64Array

__all__ = ["bytes_of_ranges", "read_numbers", "read_words"]


def read_words(data: Uint8Array, places: Int64Array, width: int) -> Uint64Array:
    """Return the number of `width` bytes at each place; the places lie in the array."""
    words = np.zeros(len(places), np.uint64)
    for byte in range(width):
        words |= data[places + byte].astype(np.uint64) << np.uint64(8 * byte)
    return words


def read_numbers(data: Uint8Array, places: Int64Array, width: int) -> Int64Array:
    """Return what `read_words` returns, with a sign."""
    return read_words(data, places, width).view(np.int64)


def bytes_of_ranges(data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> Uint8Array:
    """Return the bytes of ranges end to end; the ranges lie in the array."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return data[np.repeat(starts - (ends - sizes), sizes) + np.arange(total)]
