"""Read the headers of mini-block chunks: how many levels a chunk has, and where each of its parts is."""

from __future__ import annotations

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.kernels.compile import kernel
from lance_ops.kernels.unaligned import read_number

__all__ = ["read_headers"]


@kernel
def read_headers(
    data: Uint8Array,
    starts: Int64Array,
    stops: Int64Array,
    num_level_parts: int,
    num_buffers: int,
    width: int,
    num_levels: Int64Array,
    part_starts: Int64Array,
    part_sizes: Int64Array,
) -> int:
    """Read the header of the chunk in each range, which the caller has checked to lie in `data`.

    Part `p` of chunk `i`, levels before value buffers, is number `p * len(starts) + i` of `part_starts` and
    `part_sizes`. Sizes are two bytes wide for levels, `width` bytes for value buffers. Returns the number of chunks
    read: fewer than given when the parts of the next chunk do not fit into it.
    """
    num_chunks = len(starts)
    header = 2 + 2 * num_level_parts + width * num_buffers
    for i in range(num_chunks):
        start, stop = starts[i], stops[i]
        if stop - start < header:
            return i
        num_levels[i] = read_number(data, start, 2)
        at = start + 2
        place = start + ((header + 7) & ~7)
        for part in range(num_level_parts + num_buffers):
            size_bytes = 2 if part < num_level_parts else width
            size = read_number(data, at, size_bytes)
            at += size_bytes
            if size > stop - place:
                return i
            part_starts[part * num_chunks + i] = place
            part_sizes[part * num_chunks + i] = size
            place += (size + 7) & ~7
    return num_chunks
