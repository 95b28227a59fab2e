"""Map row addresses to their new addresses after fragments were rewritten."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import BoolArray, Int32Array, Int64Array, Uint64Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.words.key_codes import code_of

__all__ = ["remap_rows"]

_GONE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_OFFSET_MASK = np.uint64(0xFFFF_FFFF)
_NOTHING = np.uint64(0)
_ONE = np.uint64(1)


@kernel
def remap_rows(
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
    remapped: Uint64Array,
) -> int:
    """Write the new address of each row, or the highest address there is for a row that was deleted.

    `shift`, `slots` and `ids` are a table of fragment ids; see `find_codes`. Its first `len(num_rows)` codes are the
    rewritten fragments; rows of the other fragments in it keep their addresses. Rows of fragments that the table does
    not have keep theirs if `keep_unknown`, and count as deleted otherwise.

    Arrays indexed by the code of a rewritten fragment: `num_rows`; `begins`, the number of surviving rows in the
    fragments read before it; `first_words`, where its bitmap of deleted rows starts in `words`; `first_new`, the first
    new fragment that may hold its rows; `is_straight`, whether all its rows went to one new fragment in order, and
    `straight_shifts`, what to add to their addresses. `gone_before[w]` counts the deleted rows before word `w` in all
    bitmaps. For each new fragment, `new_ends` is the number of survivors up to its end, and `shifts` is what to add to
    a survivor's number to get its address.

    Returns -1, or the index of an address that no row had.
    """
    num_old, unknown = len(num_rows), _NOTHING if keep_unknown else _GONE
    for i in range(len(addresses)):
        address = addresses[i]
        code = code_of(address >> np.uint64(32), shift, slots, ids)
        if code < 0 or code >= num_old:
            remapped[i] = address | unknown if code < 0 else address
            continue
        offset = np.int64(address & _OFFSET_MASK)
        if offset >= num_rows[code]:
            return i
        if is_straight[code]:
            remapped[i] = address + straight_shifts[code]
            continue
        survivors = begins[code] + offset
        first, end = first_words[code], first_words[code + 1]
        if first < end:
            word = first + (offset >> 6)
            if word < end:
                bit = _ONE << np.uint64(offset & 63)
                if words[word] & bit:
                    remapped[i] = _GONE
                    continue
                survivors -= gone_before[word] - gone_before[first] + _count_ones(words[word] & (bit - _ONE))
            else:
                survivors -= gone_before[end] - gone_before[first]
        new = first_new[code]
        while new < len(new_ends) and survivors >= new_ends[new]:
            new += 1
        if new == len(new_ends):
            return i
        remapped[i] = np.uint64(survivors) + shifts[new]
    return -1


@part
def _count_ones(word: np.uint64) -> np.int64:
    """Return the number of set bits: sum them in pairs, fours and bytes; the product's highest byte is the total."""
    word -= (word >> _ONE) & np.uint64(0x5555555555555555)
    fours = np.uint64(0x3333333333333333)
    word = (word & fours) + ((word >> np.uint64(2)) & fours)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
