"""Mini-block chunks on their way to a page: headers as `chunk_headers` reads them, and the parts behind them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_ops.kernels.jit import kernel, part
from lance_ops.kernels.ranges import copy_bytes

__all__ = ["write_headers", "write_parts"]

Integers = NDArray[np.int64]

_PAD = 0xFE


@part
def _write_number(out: NDArray[np.uint8], place: int, number: int, width: int) -> int:
    """Write a number of `width` bytes, little-endian; return the place after it."""
    for byte in range(width):
        out[place + byte] = (number >> (8 * byte)) & 0xFF
    return place + width


@part
def _pad(out: NDArray[np.uint8], place: int) -> int:
    """Fill up to the next multiple of 8; return that place."""
    while place & 7:
        out[place] = _PAD
        place += 1
    return place


@kernel
def write_headers(
    counts: Integers,
    num_levels: Integers,
    part_sizes: Integers,
    num_level_parts: int,
    width: int,
    out: NDArray[np.uint8],
    places: Integers,
    words: Integers,
) -> int:
    """Write the headers of chunks, leaving room for their parts, padded as they are; return the bytes of all chunks.

    Part `p` of chunk `i` has `part_sizes[p * len(counts) + i]` bytes, levels before value buffers; sizes are two bytes
    wide for levels, `width` bytes for value buffers. `places` gets where each chunk's first part belongs, `words` its
    bytes and the values in it, as the page's words say them; all chunks but the last have a power of two values. The
    caller has made `out` long enough.
    """
    num_chunks = len(counts)
    num_parts = len(part_sizes) // max(num_chunks, 1)
    start = 0
    for i in range(num_chunks):
        place, end = _write_number(out, start, num_levels[i], 2), 0
        for number in range(num_parts):
            size = part_sizes[number * num_chunks + i]
            place = _write_number(out, place, size, 2 if number < num_level_parts else width)
            end += (size + 7) & ~7
        place = _pad(out, place)
        places[i] = place
        end += place
        logarithm = 0
        while i < num_chunks - 1 and 1 << logarithm < counts[i]:
            logarithm += 1
        words[i] = (((end - start) // 8 - 1) << 4) | logarithm
        start = end
    return start


@kernel
def write_parts(data: NDArray[np.uint8], sizes: Integers, places: Integers, out: NDArray[np.uint8]) -> None:
    """Copy the next part of every chunk to its place and fill it up; `places` move on behind it.

    The parts are end to end in `data`, `sizes[i]` bytes of it chunk `i`'s. The caller has left room for them.
    """
    start = 0
    for i in range(len(sizes)):
        copy_bytes(data, start, sizes[i], out, places[i])
        start += sizes[i]
        places[i] = _pad(out, places[i] + sizes[i])
