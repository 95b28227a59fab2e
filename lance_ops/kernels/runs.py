"""Decode run-length encoded chunks, whole or single values.

A chunk has the values of its runs, of 1, 2, 4 or 8 bytes each, and for each run a byte with its length.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint64Array
from lance_ops.kernels.compile import kernel
from lance_ops.kernels.unaligned import load_number, store_word

__all__ = ["expand_runs", "pick_runs"]


@kernel
def expand_runs(
    data: Uint8Array,
    value_starts: Int64Array,
    length_starts: Int64Array,
    num_runs: Int64Array,
    counts: Int64Array,
    width: int,
    out: Uint8Array,
) -> int:
    """Write the first `counts[i]` values of every chunk to `out`, end to end.

    The caller has checked that values and lengths lie in `data`; `out` has room for all values and 16 bytes more.
    Returns the number of chunks written: fewer than given when the runs of the next chunk are too short.
    """
    # multiplied by this factor, a value fills a word
    repeats = np.uint64(1)
    if width == 1:
        repeats = np.uint64(0x0101010101010101)
    elif width == 2:
        repeats = np.uint64(0x0001000100010001)
    elif width == 4:
        repeats = np.uint64(0x0000000100000001)
    place = 0
    for i in range(len(value_starts)):
        left = counts[i]
        run = 0
        while left > 0:
            if run == num_runs[i]:
                return i
            length = min(np.int64(data[length_starts[i] + run]), left)
            word = load_number(data, value_starts[i] + run * width, width) * repeats
            size = length * width
            # the next run overwrites the excess; most runs are short and need no loop
            store_word(out, place, word)
            store_word(out, place + 8, word)
            for at in range(16, size, 8):
                store_word(out, place + at, word)
            place += size
            left -= length
            run += 1
    return len(value_starts)


@kernel
def pick_runs(
    data: Uint8Array,
    value_starts: Int64Array,
    length_starts: Int64Array,
    num_runs: Int64Array,
    chunk_of: Int64Array,
    within: Int64Array,
    width: int,
    out: Uint64Array,
) -> int:
    """Read value `within[i]` of chunk `chunk_of[i]`; chunks ascend, and so do values within a chunk.

    The caller has checked that values and lengths lie in `data`. Returns how many were read: fewer than wanted when
    the next value is beyond its chunk's runs.
    """
    chunk, run, end = np.int64(-1), np.int64(0), np.int64(0)
    for i in range(len(chunk_of)):
        if chunk_of[i] != chunk:
            chunk, run, end = chunk_of[i], np.int64(-1), np.int64(0)
        while end <= within[i]:
            run += 1
            if run == num_runs[chunk]:
                return i
            end += data[length_starts[chunk] + run]
        out[i] = load_number(data, value_starts[chunk] + run * width, width)
    return len(chunk_of)
