"""Sort text and binary values by integers made of their first bytes.

Comparing integers is many times cheaper than comparing bytes behind offsets. The bytes that all values begin with are
left out; the eight bytes after them, with the first one as the most significant, are a value's word. Words order values
except those that share a word. These are few in most columns, and only they are compared as a whole. If no value has
more than seven bytes left, the eighth byte of the word is their number, and equal words are equal values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import array_of_numbers, numbers_of
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.indices.word_order import has_equal_neighbour, nulls_first, order_words, places_of_values

__all__ = ["has_text_order", "text_sort_indices"]

_WORD_BYTES = 8
_FIRST_BYTES = np.array([(1 << 64) - (1 << 64 - 8 * count) for count in range(_WORD_BYTES + 1)], np.uint64)
"""For each number of bytes, the bits of this many most significant bytes."""


def has_text_order(values: pa.Array) -> bool:
    """Return whether `text_sort_indices` can sort the values: binary ones, with enough bytes to read a word."""
    is_binary = pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)
    return bool(is_binary and len(values) > values.null_count and values.buffers()[2].size >= _WORD_BYTES)


def text_sort_indices(values: pa.Array) -> pa.Array:
    """Return the indices that sort binary values by their bytes, nulls first; equal values keep their order."""
    valid = None if not values.null_count else places_of_values(values)
    words, is_whole = _words(values, valid)
    order = order_words(words)
    if not is_whole:
        is_tied = has_equal_neighbour(words[:-1] == words[1:])
        tied = np.sort(order[is_tied])
        if len(tied) > len(order) // 2:
            return pc.array_sort_indices(values, null_placement="at_start")
        if len(tied):
            whole = values.take(array_of_numbers(tied if valid is None else valid[tied]))
            order[is_tied] = tied[numbers_of(pc.array_sort_indices(whole))]
    if valid is None:
        return array_of_numbers(order)
    return nulls_first(values, valid, order)


def _words(values: pa.Array, valid: Int64Array | None) -> tuple[Uint64Array, bool]:
    """Return the words of the valid values, and whether equal words are equal values."""
    _, offsets_buffer, data = values.buffers()
    width: type[np.signedinteger[Any]] = np.int32 if pa.types.is_binary(values.type) else np.int64
    offsets: np.ndarray[tuple[int], np.dtype[np.signedinteger[Any]]] = np.frombuffer(offsets_buffer, width)[
        values.offset : values.offset + len(values) + 1
    ]
    starts, ends = offsets[:-1], offsets[1:]
    if valid is not None:
        starts, ends = starts[valid], ends[valid]
    starts = starts + _num_shared_bytes(values)
    lengths = ends - starts
    last = data.size - _WORD_BYTES
    words_at = np.ndarray(last + 1, ">u8", data, strides=(1,))
    words = words_at[np.minimum(starts, last)].astype(np.uint64)
    late = np.flatnonzero(starts > last)  # such a word was read from before its start
    words[late] <<= (8 * (starts[late] - last)).astype(np.uint64)
    words &= _FIRST_BYTES[np.minimum(lengths, _WORD_BYTES)]
    is_whole = int(lengths.max()) < _WORD_BYTES
    if is_whole:
        words |= lengths.astype(np.uint64)
    return words, is_whole


def _num_shared_bytes(values: pa.Array) -> int:
    """Return how many bytes all values begin with; those are the bytes that the least and the greatest share."""
    bounds = pc.min_max(values)
    least, greatest = (np.frombuffer(bounds[name].as_py(), np.uint8) for name in ("min", "max"))
    shortest = min(len(least), len(greatest))
    differs = least[:shortest] != greatest[:shortest]
    return int(differs.argmax()) if differs.any() else shortest
