"""Turn lists into repetition and definition levels, one layer at a time; see `lance_ops.file.v2_1.levels`.

While levels are built, an entry has a code: 0, or the code of the layer in which it ended. Codes rise inwards. An entry
has a slot in the layer's arrays, unless its code is 1 to `ended`: then it ended at the last list or outside of it.
`slots` holds the slot of each entry, and anything for entries without one. Where slots are consecutive, `slots` is
empty and `first_slot` is the first of them.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint16Array
from lance_ops.kernels.compile import kernel

__all__ = ["count_children", "expand_lists", "mark_nulls", "renumber_levels"]


@kernel
def count_children(
    offsets: Int64Array, present: Uint8Array, codes: Uint16Array, slots: Int64Array, first_slot: int, ended: int
) -> tuple[int, int, int, bool]:
    """Return how many entries and items `expand_lists` makes, the first item's slot, and whether slots are a run."""
    num_entries, num_items, first_item, expected = len(codes), 0, -1, -1
    is_run = True
    following = first_slot
    for i in range(len(codes)):
        code = codes[i]
        slot = following
        if len(slots):
            slot = slots[i]
        following += (code == 0) | (code > ended)
        if code or (len(present) and not present[slot]):
            continue
        start, stop = offsets[slot], offsets[slot + 1]
        if start == stop:
            continue
        if first_item < 0:
            first_item = start
        elif start != expected:
            is_run = False
        expected = stop
        num_items += stop - start
        num_entries += stop - start - 1
    return num_entries, num_items, max(first_item, 0), is_run


@kernel
def expand_lists(
    offsets: Int64Array,
    present: Uint8Array,
    rep: Uint16Array,
    codes: Uint16Array,
    slots: Int64Array,
    first_slot: int,
    ended: int,
    level: int,
    null_code: int,
    empty_code: int,
    out_rep: Uint16Array,
    out_codes: Uint16Array,
    out_slots: Int64Array,
    occurs: Uint8Array,
) -> None:
    """Replace each entry that is a list by one entry for each of its items.

    Entry `i` is a list if its code is 0; otherwise it has ended in an outer layer. A list without items ends here: it
    gets `null_code` or `empty_code` and no slot, and `occurs` is set for that code. All items but the first repeat at
    `level`. `present` is empty if there are no nulls, `out_slots` if the items' slots are consecutive.
    """
    # most entries are items after the first of their list
    out_rep[:] = level
    out_codes[:] = 0
    place = 0
    following = first_slot
    for i in range(len(codes)):
        code = codes[i]
        start, stop = np.int64(-1), np.int64(-1)
        slot = following
        if len(slots):
            slot = slots[i]
        following += (code == 0) | (code > ended)
        if code == 0:
            if len(present) and not present[slot]:
                code = null_code
                occurs[null_code] = 1
            else:
                start, stop = offsets[slot], offsets[slot + 1]
                is_empty = start == stop
                code = empty_code if is_empty else code
                occurs[empty_code] |= is_empty
        out_rep[place] = rep[i]
        out_codes[place] = code
        if len(out_slots):
            out_slots[place] = -1 if start == stop else start
            for item in range(start + 1, stop):
                out_slots[place + item - start] = item
        place += (start == stop) + stop - start


@kernel
def mark_nulls(
    present: Uint8Array,
    slots: Int64Array,
    first_slot: int,
    ended: int,
    code: int,
    codes: Uint16Array,
    occurs: Uint8Array,
) -> None:
    """Give `code` to the entries whose slot holds a null; entries that already ended keep their code."""
    following = first_slot
    for i in range(len(codes)):
        slot = following
        if len(slots):
            slot = slots[i]
        following += (codes[i] == 0) | (codes[i] > ended)
        if codes[i] == 0 and not present[slot]:
            codes[i] = code
            occurs[code] = 1


@kernel
def renumber_levels(codes: Uint16Array, levels: Uint16Array) -> None:
    """Replace every code by its level."""
    for i in range(len(codes)):
        codes[i] = levels[codes[i]]
