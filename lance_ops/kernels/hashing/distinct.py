"""Number the distinct values of a page by their hashes, and verify that equal hashes meant equal values."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int32Array, Int64Array, Uint8Array, Uint32Array, Uint64Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.hashing.value_hashes import first_words
from lance_ops.kernels.unaligned import load_word

__all__ = ["is_dictionary_of", "number_distinct"]

_FIRST_SLOTS = 1 << 10
_MULTIPLIER = 0x9E3779B97F4A7C15


@kernel
def number_distinct(words: Uint64Array, firsts: Int64Array, indices: Uint32Array) -> int:
    """Number the distinct words in the order in which they first appear.

    `firsts[n]` gets the index of the first word with number `n`, `indices[i]` the number of word `i`. Returns how many
    distinct words there are, or -1 when `firsts` has no room for them.
    """
    num_slots, done, num = _FIRST_SLOTS, 0, 0
    found = np.empty(len(firsts), np.uint64)
    while done < len(words):
        slots = np.full(num_slots, -1, np.int32)
        _enter(found[:num], slots)
        done, num = _number_more(words, done, num, slots, found, firsts, indices)
        if num > len(firsts):
            return -1
        num_slots *= 4
    return num


@part
def _slot_of(word: np.uint64, mask: int) -> int:
    mixed = word * np.uint64(_MULTIPLIER)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))  # type: ignore[return-value]  # an int to numba


@kernel
def _enter(found: Uint64Array, slots: Int32Array) -> None:
    """Enter every word into the hash table."""
    mask = len(slots) - 1
    for number in range(len(found)):
        slot = _slot_of(found[number], mask)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number


@kernel
def _number_more(
    words: Uint64Array,
    done: int,
    num: int,
    slots: Int32Array,
    found: Uint64Array,
    firsts: Int64Array,
    indices: Uint32Array,
) -> tuple[int, int]:
    """Number words until half of the slots are taken; return the index of the next word and the count of numbers."""
    mask = len(slots) - 1
    for i in range(done, len(words)):
        word = words[i]
        slot = _slot_of(word, mask)
        number = slots[slot]
        while number >= 0:
            if found[number] == word:
                break
            slot = (slot + 1) & mask
            number = slots[slot]
        if number < 0:
            if num == len(firsts):
                return i, num + 1
            if 2 * num > mask:
                return i, num
            number = np.int32(num)
            slots[slot], firsts[num], found[num] = num, i, word
            num += 1
        indices[i] = number
    return len(words), num


@kernel
def is_dictionary_of(data: Uint8Array, offsets: Int64Array, firsts: Int64Array, indices: Uint32Array) -> bool:
    """Return whether every value `data[offsets[i] : offsets[i + 1]]` equals value number `firsts[indices[i]]`."""
    for i in range(len(indices)):
        first = firsts[indices[i]]
        size = offsets[i + 1] - offsets[i]
        if size != offsets[first + 1] - offsets[first] or not _are_equal(data, offsets[i], offsets[first], size):
            return False
    return True


@part
def _are_equal(data: Uint8Array, left: int, right: int, size: int) -> bool:
    left_low, left_high = first_words(data, left, size)
    right_low, right_high = first_words(data, right, size)
    differing = (left_low ^ right_low) | (left_high ^ right_high)
    if size > 16:
        for place in range(16, size - 8, 8):
            differing |= load_word(data, left + place) ^ load_word(data, right + place)
        differing |= load_word(data, left + size - 8) ^ load_word(data, right + size - 8)
    return bool(differing == np.uint64(0))
