"""Twins of kernels that find things in chunks; see `lance_ops.kernels.chunks` and `lance_ops.kernels.single_values`."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.kernels.without_numba.numbers import read_numbers

__all__ = ["locate_values", "pick_strings", "read_headers"]


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
) -> int | None:
    """Do what the kernel `read_headers` does; return None for malformed input, which the kernel reports.

    It reads the headers of all chunks at once, part by part.
    """
    num_chunks = len(starts)
    header = 2 + 2 * num_level_parts + width * num_buffers
    if (stops - starts < header).any():
        return None
    num_levels[:] = read_numbers(data, starts, 2)
    at, place = starts + 2, starts + (header + 7 & ~7)
    for part in range(num_level_parts + num_buffers):
        size_bytes = 2 if part < num_level_parts else width
        size = read_numbers(data, at, size_bytes)
        at = at + size_bytes
        if (size > stops - place).any():
            return None
        part_starts[part * num_chunks : (part + 1) * num_chunks] = place
        part_sizes[part * num_chunks : (part + 1) * num_chunks] = size
        place = place + (size + 7 & ~7)
    return num_chunks


def locate_values(
    bounds: Int64Array, positions: Int64Array, chunks: Int64Array, chunk_of: Int64Array, within: Int64Array
) -> int:
    """Do what the kernel `locate_values` does.

    It finds the chunks by bisection.
    """
    if not len(positions):
        return 0
    found = np.minimum(np.searchsorted(bounds, positions, side="right") - 1, len(bounds) - 2)
    is_fresh = np.append(True, found[1:] != found[:-1])
    touched = found[is_fresh]
    chunks[: len(touched)] = touched
    chunk_of[:] = np.cumsum(is_fresh) - 1
    within[:] = positions - bounds[found]
    return len(touched)


def pick_strings(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    chunk_of: Int64Array,
    within: Int64Array,
    width: int,
    value_starts: Int64Array,
    value_sizes: Int64Array,
) -> int | None:
    """Do what the kernel `pick_strings` does; return None for malformed input, which the kernel reports.

    It reads two offsets for each value.
    """
    places = starts[chunk_of] + within * width
    begin, end = read_numbers(data, places, width), read_numbers(data, places + width, width)
    if ((begin < (counts[chunk_of] + 1) * width) | (end < begin) | (end > sizes[chunk_of])).any():
        return None
    value_starts[:] = starts[chunk_of] + begin
    value_sizes[:] = end - begin
    return len(chunk_of)
