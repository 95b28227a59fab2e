"""FSST, decoding: bytes as codes of up to 255 symbols of 1 to 8 bytes; code 255 stands for the byte after it.

A table is `symbols` (the bytes of each, the first one lowest, the rest zero) and `lengths`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_ops.kernels.jit import kernel, part
from lance_ops.kernels.strings import read_offset
from lance_ops.kernels.unaligned import store_word

__all__ = ["fsst_decode", "fsst_decode_chunks"]

_ESCAPE = 255

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


@kernel
def fsst_decode(
    data: Bytes, starts: Integers, sizes: Integers, symbols: Words, lengths: Integers, out: Bytes, out_offsets: Integers
) -> int:
    """Decode value `i` from `sizes[i]` codes at `starts[i]` of `data`; write its bytes to `out` and where they end.

    `lengths` has 256 entries, 0 for a code without a symbol. The caller has checked that the ranges lie in `data`, and
    that `out` is eight times as long as the codes and eight bytes more. Returns the number of values decoded: fewer
    than given when that value has a code without a symbol or ends inside an escape.
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
    data: Bytes,
    starts: Integers,
    sizes: Integers,
    counts: Integers,
    width: int,
    symbols: Words,
    lengths: Integers,
    out: Bytes,
    out_offsets: Integers,
) -> int:
    """Decode the values of all chunks, which `lance_ops.kernels.strings` describes, as `fsst_decode` does.

    The caller has checked that the chunks lie in `data` and hold their offsets, and that `out` is eight times as long
    as they are and eight bytes more. Returns the number of chunks decoded: fewer than given when that one is malformed.
    """
    place, value = 0, 0
    out_offsets[0] = 0
    for i in range(len(starts)):
        start, count = starts[i], counts[i]
        before = read_offset(data, start, width)
        if before < (count + 1) * width:
            return i
        for j in range(1, count + 1):
            offset = read_offset(data, start + j * width, width)
            if offset < before or offset > sizes[i]:
                return i
            place = _decode_value(data, start + before, start + offset, symbols, lengths, out, place)
            if place < 0:
                return i
            value += 1
            out_offsets[value] = place
            before = offset
    return len(starts)


@part
def _decode_value(data: Bytes, at: int, end: int, symbols: Words, lengths: Integers, out: Bytes, place: int) -> int:
    """Return where the value's bytes end; -1 for malformed codes."""
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
