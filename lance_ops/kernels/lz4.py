"""Decode LZ4 blocks, many in one call.

A block is a run of sequences. A sequence is a token (literal length in the high four bits, match length - 4 in the low
four), more bytes of literal length, the literals, a two-byte distance, and more bytes of match length. A length goes on
if its four bits are 15, and after each further byte of 255. The last sequence ends after its literals.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.unaligned import load_word, store_word

__all__ = ["lz4_decode"]

_UNBOUNDED = 1 << 40


@kernel
def lz4_decode(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    out: Uint8Array,
    places: Int64Array,
) -> int:
    """Decode block `i` from its range of `data` to `out[places[i] : places[i + 1]]`.

    Returns the number of blocks decoded: fewer than given when the next one is malformed or not as long as its place.
    The caller has checked that ranges and places lie in the arrays.
    """
    for i in range(len(starts)):
        if not _decode_block(data, starts[i], starts[i] + sizes[i], out, places[i], places[i + 1]):
            return i
    return len(starts)


@kernel
def _decode_block(data: Uint8Array, source: int, source_end: int, out: Uint8Array, first: int, end: int) -> bool:
    place = first
    while source < source_end:
        token = _byte(data, source)
        length, source = _length(data, token >> 4, source + 1, source_end)
        if length > source_end - source or length > end - place:
            return False
        _copy_forward(data, source, out, place, length, source_end, end)
        source += length
        place += length
        if source == source_end:
            return place == end
        if source_end - source < 2:
            return False
        distance = _byte(data, source) | (_byte(data, source + 1) << 8)
        length, source = _length(data, token & 15, source + 2, source_end)
        length += 4
        if distance == 0 or distance > place - first or length > end - place:
            return False
        if distance >= 8:
            _copy_forward(out, place - distance, out, place, length, end, end)
        else:
            for byte in range(length):
                out[place + byte] = out[place - distance + byte]
        place += length
    return False


@part
def _length(data: Uint8Array, nibble: int, source: int, source_end: int) -> tuple[int, int]:
    """Return a length that begins with `nibble` and goes on at `source`, and the place after it.

    A length that is cut off is returned as one beyond every bound.
    """
    length = nibble
    more = 255 if nibble == 15 else 0
    while more == 255:
        if source >= source_end:
            return _UNBOUNDED, source
        more = _byte(data, source)
        length += more
        source += 1
    return length, source


@part
def _byte(data: Uint8Array, place: int) -> int:
    return np.int64(data[place])  # type: ignore[return-value]  # as an unsigned number it would turn sums into floats


@part
def _copy_forward(
    data: Uint8Array, source: int, out: Uint8Array, place: int, length: int, source_end: int, end: int
) -> None:
    """Copy in ascending order, in whole words where both sides stay in bounds; this may write bytes beyond `length`."""
    if length <= 16 and source + 16 <= source_end and place + 16 <= end:
        store_word(out, place, load_word(data, source))
        store_word(out, place + 8, load_word(data, source + 8))
    elif source + length + 8 <= source_end and place + length + 8 <= end:
        for word in range(0, length, 8):
            store_word(out, place + word, load_word(data, source + word))
    else:
        for byte in range(length):
            out[place + byte] = data[source + byte]
