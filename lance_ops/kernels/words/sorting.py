"""Sort words with a radix sort: a pass over all of them for each byte in which they differ, the least one first.

A pass moves each word to the place that its byte gives it, after the words before it with the same byte, so the sort
is stable. It compares nothing, and takes a third of the time of numpy's stable sort for words in no order.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Uint32Array, Uint64Array
from lance_ops.kernels.compile import kernel, part

__all__ = ["sort_words"]

_LOW_BYTE = np.uint64(255)


@part
def _count_and_compare(words: Uint64Array, counts: Uint64Array) -> bool:
    """Count how often each byte occurs at each of the eight places; return whether the words are in order."""
    is_sorted = True
    before = words[0]
    for i in range(len(words)):
        word = words[i]
        is_sorted &= before <= word
        before = word
        for place in range(8):
            counts[place, (word >> np.uint64(8 * place)) & _LOW_BYTE] += np.uint64(1)
    return is_sorted


@part
def _to_first_places(counts: Uint64Array) -> None:
    """Replace the count of each byte by the place of its first word."""
    total = np.uint64(0)
    for byte in range(256):
        count = counts[byte]
        counts[byte] = total
        total += count


@part
def _move(
    words: Uint64Array,
    order: Uint32Array,
    shift: np.uint64,
    places: Uint64Array,
    moved: Uint64Array,
    moved_order: Uint32Array,
) -> None:
    """Move each word, and its index, to the next free place of its byte."""
    for i in range(len(words)):
        word = words[i]
        byte = (word >> shift) & _LOW_BYTE
        place = places[byte]
        places[byte] = place + np.uint64(1)
        moved[place] = word
        moved_order[place] = order[i]


@kernel
def sort_words(words: Uint64Array, order: Uint32Array) -> int:
    """Sort the words in place, write the index that each had, and return how many there are.

    Equal words keep their order. `order` is as long as `words`, which are fewer than 2^32.
    """
    for i in range(len(words)):
        order[i] = i
    if len(words) == 0:
        return 0
    counts = np.zeros((8, 256), np.uint64)
    if _count_and_compare(words, counts):
        return len(words)
    here, there = words, np.empty(len(words), np.uint64)
    from_order, to_order = order, np.empty(len(words), np.uint32)
    is_in_place = True
    for place in range(8):
        shift = np.uint64(8 * place)
        if counts[place, (words[0] >> shift) & _LOW_BYTE] < np.uint64(len(words)):
            _to_first_places(counts[place])
            _move(here, from_order, shift, counts[place], there, to_order)
            here, there = there, here
            from_order, to_order = to_order, from_order
            is_in_place = not is_in_place
    if not is_in_place:
        words[:] = here
        order[:] = from_order
    return len(words)
