"""Twins of the kernels that join, split and repeat byte strings; see `lance_ops.kernels.strings`."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, OffsetArray, Uint8Array, Uint32Array
from lance_ops.kernels.without_numba.chunked_strings import strings_of_chunks
from lance_ops.kernels.without_numba.numbers import bytes_of_ranges

__all__ = ["join_strings", "place_items", "repeat_items", "split_strings"]


def join_strings(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    out: Uint8Array,
    out_offsets: Int64Array,
) -> int | None:
    """Do what the kernel `join_strings` does; return None for malformed input, which the kernel reports.

    It copies the strings of each chunk at once.
    """
    joined = strings_of_chunks(data, starts, sizes, counts, width)
    if joined is None:
        return None
    strings, out_offsets[: len(joined.offsets)] = joined
    out[: len(strings)] = strings
    return len(starts)


def place_items(
    offsets: OffsetArray, num_bytes: int, positions: Uint32Array, present: Uint8Array, out_offsets: OffsetArray
) -> int | None:
    """Do what the kernel `place_items` does; return None for positions or sizes that the kernel refuses.

    It looks up the sizes of all items at once.
    """
    there = np.flatnonzero(present) if len(present) else np.arange(len(positions))
    chosen = positions[there].astype(np.int64)
    if (chosen >= len(offsets) - 1).any():
        return None
    starts, ends = offsets[chosen].astype(np.int64), offsets[chosen + 1].astype(np.int64)
    if ((starts < 0) | (ends < starts) | (ends > num_bytes)).any():
        return None
    sizes = np.zeros(len(positions), np.int64)
    sizes[there] = ends - starts
    places = np.append(0, np.cumsum(sizes))
    out_offsets[:] = places.astype(out_offsets.dtype)
    return int(places[-1])


def repeat_items(
    data: Uint8Array, offsets: OffsetArray, positions: Uint32Array, out: Uint8Array, out_offsets: OffsetArray
) -> int:
    """Do what the kernel `repeat_items` does.

    It copies the bytes of all items at once.
    """
    sizes = np.diff(out_offsets).astype(np.int64)
    filled = np.flatnonzero(sizes)
    copied = bytes_of_ranges(data, offsets[positions[filled]].astype(np.int64), sizes[filled])
    out[: len(copied)] = copied
    return len(positions)


def split_strings(
    data: Uint8Array, offsets: Int64Array, counts: Int64Array, width: int, out: Uint8Array, sizes: Int64Array
) -> int:
    """Do what the kernel `split_strings` does.

    It writes chunk by chunk: a chunk takes some KiB, so there are few.
    """
    place, value = 0, 0
    for i, count in enumerate(counts.tolist()):
        header = (count + 1) * width
        found = offsets[value : value + count + 1]
        first, last = int(found[0]), int(found[-1])
        end = place + header + last - first
        out[place : place + header] = (found + (header - first)).astype(f"<u{width}").view(np.uint8)
        out[place + header : end] = data[first:last]
        padded = end + (place - end) % width
        out[end:padded] = 0
        sizes[i] = padded - place
        place = padded
        value += count
    return len(counts)
