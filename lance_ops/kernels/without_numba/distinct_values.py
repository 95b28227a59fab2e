"""Twins of the kernels that hash byte strings and number distinct ones; see `lance_ops.kernels.hashing`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint32Array, Uint64Array
from lance_ops.kernels.without_numba.numbers import read_words

__all__ = ["hash_values", "is_dictionary_of", "number_distinct"]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_OTHER_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_HALF_WORD = np.uint64(32)
_LONGEST = 1024
"""Every eight bytes of the longest value take another step over all values."""


def hash_values(
    data: Uint8Array, starts: Int64Array, sizes: Int64Array, end_bytes: int, hashes: Uint64Array
) -> int | None:
    """Do what the kernel `hash_values` does; return None for a value of which more than 1,024 bytes are hashed.

    It hashes all values side by side, eight bytes in each step: a long value would cause more steps than there
    are values.
    """
    if min(int(sizes.max(initial=0)), 2 * end_bytes) > _LONGEST:
        return None
    is_cut = sizes > 2 * end_bytes
    hashed = _hashes(data, starts, np.where(is_cut, end_bytes, sizes))
    cut = np.flatnonzero(is_cut)
    if len(cut):
        size = np.full(len(cut), end_bytes)
        tails = _hashes(data, starts[cut] + sizes[cut] - end_bytes, size)
        hashed[cut] = _mixed(hashed[cut] ^ sizes[cut].astype(np.uint64), tails)
    hashes[:] = hashed
    return len(starts)


def _hashes(data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> Uint64Array:
    size = sizes.astype(np.uint64)
    low, high = _word(data, starts, sizes), _word(data, starts + 8, sizes - 8)
    state: Uint64Array = (low ^ size) * _MULTIPLIER ^ (high + size) * _OTHER_MULTIPLIER
    state ^= state >> _HALF_WORD
    for step in range(16, int(sizes.max(initial=0)), 8):
        long = np.flatnonzero(sizes > step)
        # the last word of a value ends with it
        at = starts[long] + np.minimum(step, sizes[long] - 8)
        state[long] = _mixed(state[long], read_words(data, at, 8))
    return state


def _word(data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> Uint64Array:
    """Return up to eight bytes of each value as a word; bytes beyond the value are zero."""
    words = np.zeros(len(starts), np.uint64)
    for byte in range(8):
        there = np.flatnonzero(sizes > byte)
        words[there] |= data[starts[there] + byte].astype(np.uint64) << np.uint64(8 * byte)
    return words


def _mixed(state: Uint64Array, words: Uint64Array) -> Uint64Array:
    mixed = (state ^ words) * _MULTIPLIER
    return mixed ^ (mixed >> _HALF_WORD)


def number_distinct(words: Uint64Array, firsts: Int64Array, indices: Uint32Array) -> int:
    """Do what the kernel `number_distinct` does.

    Arrow numbers the words; a word is the first of its kind where the numbers reach a new height.
    """
    if not len(words):
        return 0
    encoded = pa.Array.from_buffers(pa.uint64(), len(words), [None, pa.py_buffer(words)]).dictionary_encode()
    num_distinct = len(encoded.dictionary)
    if num_distinct > len(firsts):
        return -1
    numbers = np.frombuffer(encoded.indices.buffers()[1], np.int32)[: len(words)]
    indices[:] = numbers
    heights = np.maximum.accumulate(numbers)
    firsts[:num_distinct] = np.flatnonzero(np.append(True, heights[1:] > heights[:-1]))
    return num_distinct


def is_dictionary_of(data: Uint8Array, offsets: Int64Array, firsts: Int64Array, indices: Uint32Array) -> bool:
    """Do what the kernel `is_dictionary_of` does.

    Arrow joins the values that the dictionary gives, and all bytes are compared at once.
    """
    if not len(indices):
        return True
    sizes = np.diff(offsets)
    if (sizes[firsts[indices]] != sizes[: len(indices)]).any():
        return False
    ends, bytes_of_values = pa.py_buffer(offsets), pa.py_buffer(data)
    values = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, [None, ends, bytes_of_values])
    chosen = [
        pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])
        for kind, numbers in ((pa.int64(), firsts), (pa.uint32(), indices))
    ]
    first, last = int(offsets[0]), int(offsets[len(indices)])
    given = values.take(chosen[0]).take(chosen[1]).buffers()[2]
    return first == last or np.array_equal(np.frombuffer(given, np.uint8)[: last - first], data[first:last])
