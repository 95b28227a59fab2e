"""Read single values from encoded chunks without decoding whole chunks."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint64Array
from lance_ops.kernels.compile import kernel
from lance_ops.kernels.fastlanes import ORDER, is_block
from lance_ops.kernels.strings import read_offset
from lance_ops.kernels.unaligned import load_number

__all__ = ["locate_values", "pick_packed", "pick_strings"]


@kernel
def locate_values(
    bounds: Int64Array, positions: Int64Array, chunks: Int64Array, chunk_of: Int64Array, within: Int64Array
) -> int:
    """Find the chunk of every position, and its index within the chunk; return how many chunks are touched.

    Chunk `c` holds positions `bounds[c]` to `bounds[c + 1]`. Positions ascend and lie within the bounds. `chunks`, as
    long as `positions`, gets the touched chunks. `chunk_of[i]` is an index into it, `within[i]` one into the chunk.
    """
    num_chunks, chunk, last = 0, -1, len(bounds) - 2
    end = np.int64(-1)
    for i in range(len(positions)):
        position = positions[i]
        if chunk < 0 or position >= end:
            # gallop from here, then bisect: few steps for scattered and for dense positions
            step, low = 1, max(chunk, 0)
            while low + step <= last and bounds[low + step] <= position:
                low += step
                step *= 2
            high = min(low + step, last + 1)
            while high - low > 1:
                middle = (low + high) // 2
                if bounds[middle] <= position:
                    low = middle
                else:
                    high = middle
            chunk, end = low, bounds[low + 1]
            chunks[num_chunks] = chunk
            num_chunks += 1
        chunk_of[i] = num_chunks - 1
        within[i] = position - bounds[chunk]
    return num_chunks


@kernel
def pick_packed(
    data: Uint8Array, starts: Int64Array, widths: Int64Array, places: Int64Array, bits: int, out: Uint64Array
) -> int:
    """Read value number `places[i]` of the FastLanes block at `starts[i]`, which is `widths[i]` bits wide.

    `lance_ops.kernels.fastlanes` says where a value's bits are. Returns how many were read: fewer than wanted when the
    next place is not below 1024, or its block is wider than `bits` or ends beyond `data`.
    """
    # `bits` is a power of two; a division would cost more than everything else here
    log_bits = 3
    while 1 << log_bits < bits:
        log_bits += 1
    log_lanes = 10 - log_bits
    for i in range(len(starts)):
        width, place = widths[i], places[i]
        if not (0 <= place < 1024 and is_block(data, starts[i], width, bits)):
            return i
        column = place & 127
        row = ORDER[column >> log_lanes << (log_lanes - 4)] * 8 + (place >> 7)
        bit = row * width
        shift = bit & (bits - 1)
        lane = column & ((1 << log_lanes) - 1)
        at = starts[i] + (((bit >> log_bits << log_lanes) + lane) << (log_bits - 3))
        value = np.uint64(0)
        if width > 0:
            value = load_number(data, at, bits >> 3) >> np.uint64(shift)
            if shift + width > bits:
                value |= load_number(data, at + 128, bits >> 3) << np.uint64(bits - shift)
            value &= np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - width)
        out[i] = value
    return len(starts)


@kernel
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
) -> int:
    """Find value `within[i]` of chunk `chunk_of[i]`; `lance_ops.kernels.strings` describes chunks.

    The caller has checked that the chunks lie in `data` and hold their offsets. Returns how many were found: fewer than
    wanted when the next value does not lie in its chunk.
    """
    for i in range(len(chunk_of)):
        chunk = chunk_of[i]
        place = starts[chunk] + within[i] * width
        begin, end = read_offset(data, place, width), read_offset(data, place + width, width)
        if begin < (counts[chunk] + 1) * width or end < begin or end > sizes[chunk]:
            return i
        value_starts[i] = starts[chunk] + begin
        value_sizes[i] = end - begin
    return len(chunk_of)
