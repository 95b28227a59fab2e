"""Row addresses after their fragments were rewritten."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import BoolArray, Int32Array, Int64Array, Uint64Array
from lance_ops.kernels.jit import kernel, part
from lance_ops.kernels.key_codes import code_of

__all__ = ["move_rows"]

_GONE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_OFFSET_MASK = np.uint64(0xFFFF_FFFF)
_NOTHING = np.uint64(0)
_ONE = np.uint64(1)


@kernel
def move_rows(
    addresses: Uint64Array,
    shift: int,
    slots: Int32Array,
    ids: Uint64Array,
    num_rows: Int64Array,
    begins: Int64Array,
    first_words: Int64Array,
    words: Uint64Array,
    gone_before: Int64Array,
    first_new: Int64Array,
    new_ends: Int64Array,
    shifts: Uint64Array,
    is_straight: BoolArray,
    straight_shifts: Uint64Array,
    keep_unknown: bool,
    moved: Uint64Array,
) -> int:
    """Write where each row is now; those that are gone get the highest address there is.

    `shift`, `slots` and `ids` are a table of fragment ids, see `find_codes`: first the old ones, of which there are as
    many as there are `num_rows`, then others, whose rows stay. Those of unknown fragments stay, or are gone. By its
    code an old fragment has `num_rows`, `begins` after so many survivors of those read before it, and has the bits of
    its deleted rows from `words[first_words]` on; before a word, `gone_before` rows are deleted in all fragments. The
    row after so many survivors is in the first new fragment from `first_new` on that ends beyond it; adding `shifts`
    makes its address. An old fragment that `is_straight` has its rows all in one new one, `straight_shifts` further on.

    Returns -1, or the place of an address that no row had.
    """
    num_old, unknown = len(num_rows), _NOTHING if keep_unknown else _GONE
    for i in range(len(addresses)):
        address = addresses[i]
        code = code_of(address >> np.uint64(32), shift, slots, ids)
        if code < 0 or code >= num_old:
            moved[i] = address | unknown if code < 0 else address
            continue
        offset = np.int64(address & _OFFSET_MASK)
        if offset >= num_rows[code]:
            return i
        if is_straight[code]:
            moved[i] = address + straight_shifts[code]
            continue
        survivors = begins[code] + offset
        first, end = first_words[code], first_words[code + 1]
        if first < end:
            word = first + (offset >> 6)
            if word < end:
                bit = _ONE << np.uint64(offset & 63)
                if words[word] & bit:
                    moved[i] = _GONE
                    continue
                survivors -= gone_before[word] - gone_before[first] + _count_ones(words[word] & (bit - _ONE))
            else:
                survivors -= gone_before[end] - gone_before[first]
        new = first_new[code]
        while new < len(new_ends) and survivors >= new_ends[new]:
            new += 1
        if new == len(new_ends):
            return i
        moved[i] = np.uint64(survivors) + shifts[new]
    return -1


@part
def _count_ones(word: np.uint64) -> np.int64:
    """Add up bits in pairs, in fours, in bytes; the product's highest byte is the sum of all bytes."""
    word -= (word >> _ONE) & np.uint64(0x5555555555555555)
    fours = np.uint64(0x3333333333333333)
    word = (word & fours) + ((word >> np.uint64(2)) & fours)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
