"""Compute xxHash64 (seed 0) of byte strings, as https://github.com/Cyan4973/xxHash specifies it."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint64Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.unaligned import load_word

__all__ = ["xxh64"]

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_WIDTH = np.uint64(64)


@part
def _rotate(value: np.uint64, bits: int) -> np.uint64:
    return (value << np.uint64(bits)) | (value >> (_WIDTH - np.uint64(bits)))


@part
def _round(state: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(state + word * _P2, 31) * _P1


@kernel
def xxh64(data: Uint8Array, offsets: Int64Array, out: Uint64Array) -> None:
    """Write the hash of each of the `len(out)` strings; string `i` is `data[offsets[i] : offsets[i + 1]]`."""
    for i in range(len(out)):
        place, end = offsets[i], offsets[i + 1]
        length = np.uint64(end - place)
        if end - place >= 32:
            a, b, c, d = _P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1
            while place + 32 <= end:
                a = _round(a, np.uint64(load_word(data, place)))
                b = _round(b, np.uint64(load_word(data, place + 8)))
                c = _round(c, np.uint64(load_word(data, place + 16)))
                d = _round(d, np.uint64(load_word(data, place + 24)))
                place += 32
            state = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
            state = (state ^ _round(np.uint64(0), a)) * _P1 + _P4
            state = (state ^ _round(np.uint64(0), b)) * _P1 + _P4
            state = (state ^ _round(np.uint64(0), c)) * _P1 + _P4
            state = (state ^ _round(np.uint64(0), d)) * _P1 + _P4
        else:
            state = _P5
        state += length
        while place + 8 <= end:
            state = _rotate(state ^ _round(np.uint64(0), np.uint64(load_word(data, place))), 27) * _P1 + _P4
            place += 8
        if place + 4 <= end:
            word = np.uint64(0)
            for byte in range(4):
                word |= np.uint64(data[place + byte]) << np.uint64(8 * byte)
            state = _rotate(state ^ (word * _P1), 23) * _P2 + _P3
            place += 4
        while place < end:
            state = _rotate(state ^ (np.uint64(data[place]) * _P5), 11) * _P1
            place += 1
        state = (state ^ (state >> np.uint64(33))) * _P2
        state = (state ^ (state >> np.uint64(29))) * _P3
        out[i] = state ^ (state >> np.uint64(32))
