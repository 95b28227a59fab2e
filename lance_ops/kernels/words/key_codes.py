"""Number distinct 64-bit keys in the order in which they first appear, with a hash table with open addressing.

`slots` is the table: each slot holds the code of a key, or -1. Its length is a power of two, and it is at most half
full. `marks` is a filter with one word for eight slots. Each key sets two bits of a word, chosen by more bits of its
hash: the first bit rules out most absent keys, the second bit most of the rest.

Indices are unsigned, which saves numba's check for negative indices.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int32Array, Int64Array, Uint64Array
from lance_ops.kernels.compile import kernel, part

__all__ = ["build_codes", "code_of", "find_codes", "find_hits"]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: it spreads keys that lie close together
_IN_WORD, _BIT = np.uint64(63), np.uint64(1)
_FEW = 4  # if fewer than one in this many keys has the first mark, testing the second one first saves table lookups


@part
def _place_of(key: np.uint64, shift: int, slots: Int32Array, key_of: Uint64Array) -> np.uint64:
    """Return the index in `slots` of a key, or of the free slot for it."""
    mask = np.uint64(len(slots) - 1)
    place = (key * _MULTIPLIER) >> np.uint64(shift)
    while slots[place] >= 0 and key_of[np.uint64(slots[place])] != key:
        place = (place + np.uint64(1)) & mask
    return place


@part
def code_of(key: np.uint64, shift: int, slots: Int32Array, key_of: Uint64Array) -> np.int32:
    """Return a key's code, or -1 if the table does not have it; the arguments are those of `find_codes`."""
    return np.int32(slots[_place_of(key, shift, slots, key_of)])


@part
def _first_mark(key: np.uint64, shift: int) -> tuple[np.uint64, np.uint64]:
    """Return the index of a key's word in `marks`, and the number of its first bit there."""
    place = (key * _MULTIPLIER) >> np.uint64(shift - 3)
    return place >> np.uint64(6), place & _IN_WORD


@part
def _other_mark(key: np.uint64, shift: int) -> np.uint64:
    """Return the number of a key's second bit in its word of `marks`."""
    return ((key * _MULTIPLIER) >> np.uint64(shift - 9)) & _IN_WORD


@kernel
def build_codes(
    keys: Uint64Array,
    shift: int,
    slots: Int32Array,
    marks: Uint64Array,
    codes: Int64Array,
    key_of: Uint64Array,
) -> int:
    """Write the code of each key and the key of each code; fill `slots` (all -1 before) and `marks` (all 0 before).

    `shift` is 64 less the logarithm of the table's length. Returns how many codes there are.
    """
    count = 0
    for i in range(len(keys)):
        place = _place_of(keys[i], shift, slots, key_of)
        if slots[place] < 0:
            slots[place] = count
            key_of[count] = keys[i]
            count += 1
            word, first = _first_mark(keys[i], shift)
            marks[word] |= (_BIT << first) | (_BIT << _other_mark(keys[i], shift))
        codes[i] = slots[place]
    return count


@kernel
def find_codes(
    keys: Uint64Array,
    shift: int,
    slots: Int32Array,
    key_of: Uint64Array,
    codes: Int64Array,
) -> None:
    """Write the code of each key, or -1 for a key that the table does not have."""
    for i in range(len(keys)):
        codes[i] = code_of(keys[i], shift, slots, key_of)


@kernel
def find_hits(
    keys: Uint64Array,
    shift: int,
    slots: Int32Array,
    key_of: Uint64Array,
    marks: Uint64Array,
    places: Int64Array,
    codes: Int64Array,
) -> int:
    """Write the indices of the keys that the table has, and their codes; return how many."""
    # No branch depends on a mark: the processor cannot predict which keys are present.
    marked = np.uint64(0)
    for i in range(len(keys)):
        word, first = _first_mark(keys[i], shift)
        places[marked] = i
        marked += (marks[word] >> first) & _BIT
    if np.int64(marked) < len(keys) // _FEW:  # otherwise most marked keys are present
        likely, marked = np.int64(marked), np.uint64(0)
        for j in range(likely):
            place = places[j]
            key = keys[np.uint64(place)]
            word, _ = _first_mark(key, shift)
            places[marked] = place
            marked += (marks[word] >> _other_mark(key, shift)) & _BIT
    count = 0
    for j in range(np.int64(marked)):
        place = places[j]
        code = code_of(keys[np.uint64(place)], shift, slots, key_of)
        if code >= 0:
            places[count], codes[count] = place, code
            count += 1
    return count
