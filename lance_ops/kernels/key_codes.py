"""Numbers for distinct 64-bit keys, in the order in which they are first met: a hash table with open addressing.

`slots` is the table, a power of two in length and at most half full: the code of a key, or -1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_ops.kernels.jit import kernel, part

__all__ = ["build_codes", "code_of", "find_codes"]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: it spreads keys that lie close together


@part
def _place_of(key: np.uint64, shift: int, slots: NDArray[np.int32], key_of: NDArray[np.uint64]) -> np.int64:
    """Return where in `slots` a key is, or has room."""
    mask = len(slots) - 1
    place = np.int64((key * _MULTIPLIER) >> np.uint64(shift))
    while slots[place] >= 0 and key_of[slots[place]] != key:
        place = (place + 1) & mask
    return place


@part
def code_of(key: np.uint64, shift: int, slots: NDArray[np.int32], key_of: NDArray[np.uint64]) -> np.int32:
    """Return a key's code, -1 if the table does not have it; the arguments are those of `find_codes`."""
    return np.int32(slots[_place_of(key, shift, slots, key_of)])


@kernel
def build_codes(
    keys: NDArray[np.uint64],
    shift: int,
    slots: NDArray[np.int32],
    codes: NDArray[np.int64],
    key_of: NDArray[np.uint64],
) -> int:
    """Write the code of each key and the key of each code, fill `slots` (all -1 before), return how many codes.

    `shift` is 64 less the table's length in bits.
    """
    count = 0
    for i in range(len(keys)):
        place = _place_of(keys[i], shift, slots, key_of)
        if slots[place] < 0:
            slots[place] = count
            key_of[count] = keys[i]
            count += 1
        codes[i] = slots[place]
    return count


@kernel
def find_codes(
    keys: NDArray[np.uint64],
    shift: int,
    slots: NDArray[np.int32],
    key_of: NDArray[np.uint64],
    codes: NDArray[np.int64],
) -> None:
    """Write the code of each key, -1 for one that the table does not have."""
    for i in range(len(keys)):
        codes[i] = code_of(keys[i], shift, slots, key_of)
