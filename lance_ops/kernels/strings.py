"""Join the byte strings of many chunks into one array, and split an array into such chunks.

A chunk is `offsets[n + 1] | bytes`. The offsets are 4 or 8 bytes wide and count from the start of the chunk; the first
one is where the bytes begin.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.ranges import copy_bytes
from lance_ops.kernels.unaligned import load_word

__all__ = ["join_strings", "read_offset", "split_strings"]


@part
def read_offset(data: Uint8Array, place: int, width: int) -> int:
    """Read an offset of 4 or 8 bytes; an offset of 2^63 or more comes back negative."""
    if width == 8:
        return np.int64(load_word(data, place))  # type: ignore[return-value]  # an int to numba
    return np.int64(
        np.uint32(data[place])
        | np.uint32(data[place + 1]) << np.uint32(8)
        | np.uint32(data[place + 2]) << np.uint32(16)
        | np.uint32(data[place + 3]) << np.uint32(24)
    )  # type: ignore[return-value]  # an int to numba


@kernel
def join_strings(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    out: Uint8Array,
    out_offsets: Int64Array,
) -> int:
    """Copy the strings of all chunks to `out`, end to end, and write where each ends.

    Chunk `i` has `counts[i]` strings in `sizes[i]` bytes from `starts[i]` on. The caller has checked that the chunks
    lie in `data`, hold their offsets, and together fit into `out`. Returns the number of chunks joined: fewer than
    given when the offsets of the next chunk are not in order or point beyond it.
    """
    place, value = 0, 0
    out_offsets[0] = 0
    for i in range(len(starts)):
        start, count = starts[i], counts[i]
        first = read_offset(data, start, width)
        if first < (count + 1) * width or first > sizes[i]:
            return i
        before = first
        shift = place - first
        for j in range(1, count + 1):
            offset = read_offset(data, start + j * width, width)
            if offset < before:
                return i
            value += 1
            out_offsets[value] = shift + offset
            before = offset
        if before > sizes[i]:
            return i
        copy_bytes(data, start + first, before - first, out, place)
        place += before - first
    return len(starts)


@kernel
def split_strings(
    data: Uint8Array,
    offsets: Int64Array,
    counts: Int64Array,
    width: int,
    out: Uint8Array,
    sizes: Int64Array,
) -> None:
    """Write chunks of `counts[i]` strings each to `out`, end to end, each padded with zeros to a multiple of `width`.

    String `j` is `data[offsets[j] : offsets[j + 1]]`. The caller has checked the offsets and that the chunks fit `out`.
    """
    place, value = 0, 0
    for i in range(len(counts)):
        count, first = counts[i], offsets[value]
        header = (count + 1) * width
        if width == 8:
            wide = out[place : place + header].view(np.uint64)
            for j in range(count + 1):
                wide[j] = header + offsets[value + j] - first
        else:
            narrow = out[place : place + header].view(np.uint32)
            for j in range(count + 1):
                narrow[j] = header + offsets[value + j] - first
        value += count
        num_bytes = offsets[value] - first
        copy_bytes(data, first, num_bytes, out, place + header)
        sizes[i] = (header + num_bytes + width - 1) // width * width
        for byte in range(header + num_bytes, sizes[i]):
            out[place + byte] = 0
        place += sizes[i]
