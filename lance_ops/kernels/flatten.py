"""Steps from lists to repetition and definition levels; `lance_ops.file.v2_1.levels` says what they mean.

While levels are built an entry has a code: 0, or that of the layer where it ended; codes rise inwards. Entries own a
slot unless they ended at the last list or outside of it: up to code `ended`. Slots are given as an array, with anything
for entries without one, or, where they follow one another, as the first of them and an empty array.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint16Array
from lance_ops.kernels.jit import kernel

__all__ = ["count_children", "expand_lists", "mark_nulls", "renumber_levels"]


@kernel
def count_children(
    offsets: Int64Array, present: Uint8Array, codes: Uint16Array, slots: Int64Array, first_slot: int, ended: int
) -> tuple[int, int, int, bool]:
    """Return how many entries and items `expand_lists` makes, the first item's slot, and whether slots follow it."""
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
    """Replace entries that are lists by one for each of their items.

    Entry `i` is a list if its code is 0, and has ended outside otherwise. A list without items ends here, with a code
    and no slot, and `occurs` is set for that code. All items but the first repeat at `level`. `present` may be empty:
    no nulls; `out_slots` too: they follow one another.
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
    """Give a code to the entries whose slot holds a null; those that have one already keep theirs."""
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
