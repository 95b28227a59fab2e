"""Twins of the kernels that read byte strings; see `lance_ops.kernels.strings` and `lance_ops.kernels.fsst`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lance_ops.core.ndarrays import Int64Array, OffsetArray, Uint8Array, Uint32Array, Uint64Array
from lance_ops.kernels.without_numba.numbers import bytes_of_ranges, read_numbers

__all__ = ["fsst_decode", "fsst_decode_chunks", "join_strings", "place_items", "repeat_items"]

_ESCAPE = 255


class _Strings(NamedTuple):
    starts: Int64Array
    sizes: Int64Array


def _strings_of_chunks(
    data: Uint8Array, starts: Int64Array, sizes: Int64Array, counts: Int64Array, width: int
) -> _Strings | None:
    """Return where the strings of all chunks are; None if the offsets of a chunk are not in order."""
    num_offsets = counts + 1
    ends = np.cumsum(num_offsets)
    number = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - num_offsets, num_offsets)
    chunk_starts = np.repeat(starts, num_offsets)
    offsets = read_numbers(data, chunk_starts + number * width, width)
    is_first = number == 0
    grows = offsets[1:] >= offsets[:-1]
    if (offsets[is_first] < num_offsets * width).any() or not (grows | is_first[1:]).all():
        return None
    if (offsets[ends - 1] > sizes).any():
        return None
    begun = np.flatnonzero(~is_first) - 1
    return _Strings(chunk_starts[begun] + offsets[begun], offsets[begun + 1] - offsets[begun])


def join_strings(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    out: Uint8Array,
    out_offsets: Int64Array,
) -> int | None:
    """Copy all strings at once."""
    strings = _strings_of_chunks(data, starts, sizes, counts, width)
    if strings is None:
        return None
    joined = bytes_of_ranges(data, *strings)
    out[: len(joined)] = joined
    out_offsets[0] = 0
    np.cumsum(strings.sizes, out=out_offsets[1 : len(strings.sizes) + 1])
    return len(starts)


def fsst_decode(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    symbols: Uint64Array,
    lengths: Int64Array,
    out: Uint8Array,
    out_offsets: OffsetArray,
) -> int | None:
    """Look up the symbols of all codes at once, and keep as many bytes of each as it has."""
    codes = bytes_of_ranges(data, starts, sizes)
    ends = np.cumsum(sizes)
    is_escape = _escapes(codes)
    is_escaped = np.append(False, is_escape[:-1])[: len(codes)]
    num_bytes = lengths[codes]
    num_bytes[is_escape] = 0
    num_bytes[is_escaped] = 1
    if (num_bytes[~is_escape] == 0).any() or is_escape[ends[sizes > 0] - 1].any():
        return None
    words = symbols[codes]
    words[is_escaped] = codes[is_escaped]
    kept = words.view(np.uint8).reshape(-1, 8)[np.arange(8) < num_bytes[:, None]]
    out[: len(kept)] = kept
    out_offsets[0] = 0
    out_offsets[1 : len(starts) + 1] = np.append(0, np.cumsum(num_bytes))[ends]
    return len(starts)


def _escapes(codes: Uint8Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which codes escape the byte after them: every second one of a run of 255, beginning with the first."""
    is_255 = codes == _ESCAPE
    number = np.arange(len(codes))
    before_run = np.maximum.accumulate(np.where(is_255, -1, number))
    escapes: np.ndarray[tuple[int], np.dtype[np.bool_]] = is_255 & ((number - before_run) % 2 == 1)
    return escapes


def fsst_decode_chunks(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    symbols: Uint64Array,
    lengths: Int64Array,
    ends: Int64Array,
    out: Uint8Array,
    out_offsets: OffsetArray,
) -> int | None:
    """Decode the strings of all chunks; `ends` is for the kernel."""
    strings = _strings_of_chunks(data, starts, sizes, counts, width)
    if strings is None or fsst_decode(data, *strings, symbols, lengths, out, out_offsets) is None:
        return None
    return len(starts)


def place_items(
    offsets: OffsetArray, num_bytes: int, positions: Uint32Array, present: Uint8Array, out_offsets: OffsetArray
) -> int | None:
    """Look up the sizes of all items at once."""
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
    """Copy the bytes of all items at once."""
    sizes = np.diff(out_offsets).astype(np.int64)
    filled = np.flatnonzero(sizes)
    copied = bytes_of_ranges(data, offsets[positions[filled]].astype(np.int64), sizes[filled])
    out[: len(copied)] = copied
    return len(positions)
