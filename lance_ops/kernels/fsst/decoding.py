"""Decode FSST: a code is one byte and stands for a symbol of 1 to 8 bytes; code 255 escapes the byte after it.

A table is `symbols` (the bytes of each symbol as a word, the first byte lowest, the rest zero) and `lengths`.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, OffsetArray, Uint8Array, Uint64Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.strings import read_offset
from lance_ops.kernels.unaligned import load_word, store_word

__all__ = ["fsst_decode", "fsst_decode_chunks"]

_ESCAPE = 255
_EACH_BYTE = np.uint64(0x0101010101010101)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_HIGH_BIT = np.uint64(0x8080808080808080)


@kernel
def fsst_decode(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    symbols: Uint64Array,
    lengths: Int64Array,
    out: Uint8Array,
    out_offsets: OffsetArray,
) -> int:
    """Decode value `i` from `sizes[i]` codes at `starts[i]` of `data`; write its bytes to `out` and where they end.

    `lengths` has 256 entries, 0 for a code without a symbol. The caller has checked that the ranges lie in `data`, and
    that `out` is eight times as long as the codes and eight bytes more. Returns the number of values decoded: fewer
    than given when the next value has a code without a symbol or ends inside an escape.
    """
    place = 0
    out_offsets[0] = 0
    for i in range(len(starts)):
        place = _decode_value(data, starts[i], starts[i] + sizes[i], symbols, lengths, out, place)
        if place < 0:
            return i
        out_offsets[i + 1] = place
    return len(starts)


@kernel
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
) -> int:
    """Decode the values of all chunks as `fsst_decode` does; `lance_ops.kernels.strings` describes chunks.

    The codes of a chunk are decoded in one go, across its values. `ends`, one longer than the longest chunk, records
    where the output of each code ends. The caller has checked that the chunks lie in `data` and hold their offsets, and
    that `out` is eight times as long as they are and eight bytes more. Returns the number of chunks decoded: fewer than
    given when the next one is malformed.
    """
    place, value = 0, 0
    out_offsets[0] = 0
    num_symbols = 0
    while num_symbols < _ESCAPE and lengths[num_symbols] > 0:
        num_symbols += 1
    for i in range(len(starts)):
        start, count = starts[i], counts[i]
        before = read_offset(data, start, width)
        last = read_offset(data, start + count * width, width)
        if before < (count + 1) * width or last < before or last > sizes[i]:
            return i
        place = _decode_codes(data, start, before, last, num_symbols, symbols, lengths, ends, out, place)
        if place < 0:
            return i
        for j in range(1, count + 1):
            offset = read_offset(data, start + j * width, width)
            if offset < before or offset > last or ends[offset] < 0:
                return i
            value += 1
            out_offsets[np.uint64(value)] = ends[np.uint64(offset)]
            before = offset
    return len(starts)


@part
def _decode_codes(
    data: Uint8Array,
    start: int,
    at: int,
    last: int,
    num_symbols: int,
    symbols: Uint64Array,
    lengths: Int64Array,
    ends: Int64Array,
    out: Uint8Array,
    place: int,
) -> int:
    """Decode the codes from `start + at` to `start + last`, of which the first `num_symbols` have a symbol.

    `ends[k]` gets the place in `out` before the code at `start + k`, or -1 if that byte is the second of an escape.
    Returns the place after all codes, or -1 if they are malformed.
    """
    top = np.uint64(max(num_symbols, 1) - 1)
    is_high = top >= np.uint64(128)
    headroom = (np.uint64(127) - (top & np.uint64(127))) * _EACH_BYTE
    ends[at] = place
    while at < last:
        stop = min(at + 8, last)
        if stop == at + 8 and num_symbols > 0:
            codes = load_word(data, start + at)
            # the highest bit of each byte says whether its lower seven bits exceed those of the top code
            above = (codes & _LOW_BITS) + headroom
            if (above & codes if is_high else above | codes) & _HIGH_BIT == 0:
                for k in range(8):
                    code = codes >> np.uint64(8 * k) & np.uint64(0xFF)
                    store_word(out, place, symbols[code])
                    place += lengths[code]
                    # an unsigned index saves numba's check for negative indices
                    ends[np.uint64(at + k + 1)] = place
                at = stop
                continue
        while at < stop:
            code = np.uint64(data[start + at])
            at += 1
            if lengths[code] > 0:
                store_word(out, place, symbols[code])
                place += lengths[code]
            elif code == _ESCAPE and at < last:
                ends[at] = -1
                out[place] = data[start + at]
                place += 1
                at += 1
            else:
                return -1
            ends[at] = place
    return place


@part
def _decode_value(
    data: Uint8Array, at: int, end: int, symbols: Uint64Array, lengths: Int64Array, out: Uint8Array, place: int
) -> int:
    """Return where the value's bytes end, or -1 if its codes are malformed."""
    while at < end:
        code = data[at]
        if code != _ESCAPE:
            length = lengths[code]
            if length == 0:
                return -1
            store_word(out, place, symbols[code])
            place += length
            at += 1
        elif at + 1 < end:
            out[place] = data[at + 1]
            place += 1
            at += 2
        else:
            return -1
    return place
