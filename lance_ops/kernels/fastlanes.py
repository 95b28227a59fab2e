"""FastLanes bit packing of blocks of 1024 unsigned integers of T = 8, 16, 32 or 64 bits.

A block has 1024 / T lanes. Lane `l` holds, in this order, the T values at `ORDER[r // 8] * 16 + (r % 8) * 128 + l` for
`r` in 0..T. The low W bits of a lane's values follow each other, lowest bit first, in W words of T bits; word `w` of
lane `l` is word `w * lanes + l` of the packed block.

The lanes of one row lie side by side: 128 bytes, whatever T is. So a row is moved as sixteen 8-byte words, each with
several lanes inside; a shift carries bits into the neighbouring lane, and a mask that repeats with T removes them.
One compiled function thus serves every T.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.unaligned import load_word, read_number, store_word

__all__ = ["ORDER", "is_block", "pack_runs", "read_widths", "unpack_blocks"]

ORDER = (0, 4, 2, 6, 1, 5, 3, 7)
"""The order of groups of eight rows in a block; it is its own inverse."""
_ROW_BYTES = 128
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


@part
def _log2(bits: int) -> int:
    """Return the logarithm of a power of two: a shift finds each row, where a division would take longer than a row."""
    log = 0
    while 1 << log < bits:
        log += 1
    return log


@part
def _lane_ones(bits: int) -> np.uint64:
    """Return the word whose lanes of `bits` have their lowest bit set."""
    return _FULL // (_FULL >> np.uint64(64 - bits))


@part
def _lane_mask(first: int, count: int, ones: np.uint64) -> np.uint64:
    """Return the word whose lanes have their bits `[first, first + count)` set; `ones` has the lowest of each."""
    if count == 0:
        return np.uint64(0)
    return ones * ((_FULL >> np.uint64(64 - count)) << np.uint64(first))


@part
def _row_place(row: int, bits: int) -> int:
    """Return the byte at which the values of one row lie in an unpacked block."""
    return (ORDER[row >> 3] * 16 + (row & 7) * 128) * bits >> 3


@part
def is_block(data: Uint8Array, start: int, width: int, bits: int) -> bool:
    """Return whether a block of values `width` bits wide lies at byte `start` of `data`."""
    return 0 <= width <= bits and 0 <= start <= len(data) - _ROW_BYTES * width


@kernel
def read_widths(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    word_bytes: int,
    widths: Int64Array,
) -> int:
    """Read the word before each block: how many bits wide it is.

    Word and block are `sizes[i]` bytes from `starts[i]` on, and the caller has checked that they lie in `data`. Returns
    how many were read: fewer than given when the next block is shorter than its width demands.
    """
    for i in range(len(starts)):
        if sizes[i] < word_bytes:
            return i
        width = read_number(data, starts[i], word_bytes)
        if not 0 <= width <= (sizes[i] - word_bytes) // _ROW_BYTES:
            return i
        widths[i] = width
    return len(starts)


@kernel
def unpack_blocks(
    data: Uint8Array,
    starts: Int64Array,
    widths: Int64Array,
    places: Int64Array,
    bits: int,
    out: Uint8Array,
) -> int:
    """Unpack block `i`, `widths[i]` bits wide, from byte `starts[i]` of `data` to byte `places[i]` of `out`.

    Each block writes `128 * bits` bytes; where blocks overlap in `out`, the later one wins. The caller has made room.
    Returns how many were unpacked: fewer than given when the next one is wider than `bits` or ends beyond `data`.
    """
    log, ones = _log2(bits), _lane_ones(bits)
    for block in range(len(starts)):
        width, place = widths[block], places[block]
        if not is_block(data, starts[block], width, bits):
            return block
        if width == 0:
            out[place : place + _ROW_BYTES * bits] = 0
            continue
        for row in range(bits):
            target = place + _row_place(row, bits)
            source = starts[block] + (row * width >> log) * _ROW_BYTES
            shift = row * width & (bits - 1)
            low = np.uint64(shift)
            here = min(width, bits - shift)
            low_mask = _lane_mask(0, here, ones)
            if here == width:
                for word in range(0, _ROW_BYTES, 8):
                    store_word(out, target + word, (load_word(data, source + word) >> low) & low_mask)
            else:
                high = np.uint64(here)
                high_mask = _lane_mask(here, width - here, ones)
                for word in range(0, _ROW_BYTES, 8):
                    value = (load_word(data, source + word) >> low) & low_mask
                    value |= (load_word(data, source + _ROW_BYTES + word) << high) & high_mask
                    store_word(out, target + word, value)
    return len(starts)


@part
def _pack_block(data: Uint8Array, start: int, width: int, bits: int, out: Uint8Array, place: int) -> None:
    """Write the `128 * width` packed bytes of the block at `start`."""
    log, ones = _log2(bits), _lane_ones(bits)
    for row in range(bits if width else 0):
        source = start + _row_place(row, bits)
        target = place + (row * width >> log) * _ROW_BYTES
        shift = row * width & (bits - 1)
        low = np.uint64(shift)
        here = min(width, bits - shift)
        low_mask = _lane_mask(0, here, ones)
        if shift == 0:
            # the first value of these words: overwrite what they held
            for word in range(0, _ROW_BYTES, 8):
                store_word(out, target + word, load_word(data, source + word) & low_mask)
        else:
            for word in range(0, _ROW_BYTES, 8):
                packed = load_word(out, target + word) | ((load_word(data, source + word) & low_mask) << low)
                store_word(out, target + word, packed)
        if here < width:
            high = np.uint64(here)
            high_mask = _lane_mask(here, width - here, ones)
            for word in range(0, _ROW_BYTES, 8):
                store_word(out, target + _ROW_BYTES + word, (load_word(data, source + word) & high_mask) >> high)


@part
def _width_of(data: Uint8Array, start: int, size: int, bits: int) -> int:
    """Return the bits that the largest of the values in `size` bytes needs."""
    union = np.uint64(0)
    for place in range(start, start + size - 7, 8):
        union |= load_word(data, place)
    for byte in range(size - size % 8, size):
        union |= np.uint64(data[start + byte]) << np.uint64(byte % 8 * 8)
    shift = 32
    while shift >= bits:
        union |= union >> np.uint64(shift)
        shift //= 2
    if bits < 64:
        union &= (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    width = 0
    while union:
        width += 1
        union >>= np.uint64(1)
    return width


@kernel
def pack_runs(
    data: Uint8Array,
    counts: Int64Array,
    width: int,
    bits: int,
    out: Uint8Array,
    sizes: Int64Array,
) -> None:
    """Pack consecutive runs of `counts[i]` values end to end, each padded with zeros to a block.

    With a negative `width` each run is as wide as its largest value needs, and a word of `bits` bits before the block
    holds that width. Writes how many bytes each run takes. The caller has checked that no run has more than 1024 values
    and that `out` has room for the widest. Bits of a value above the width are lost.
    """
    filled = np.zeros(_ROW_BYTES * bits, np.uint8)
    start, place = 0, 0
    for run in range(len(counts)):
        size = counts[run] * bits // 8
        run_width = width
        begin = place
        if width < 0:
            run_width = _width_of(data, start, size, bits)
            for byte in range(bits // 8):
                out[place + byte] = 0
            out[place] = run_width
            place += bits // 8
        if size == len(filled):
            _pack_block(data, start, run_width, bits, out, place)
        else:
            filled[:size] = data[start : start + size]
            filled[size:] = 0
            _pack_block(filled, 0, run_width, bits, out, place)
        place += _ROW_BYTES * run_width
        sizes[run] = place - begin
        start += size
