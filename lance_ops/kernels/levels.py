"""Steps between repetition and definition levels and lists; `lance_ops.file.levels` says what they mean.

Levels are u16, one an entry. Outputs are as long as the caller could have to keep; how much of them was used is
returned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_ops.kernels.jit import kernel

__all__ = ["collapse_lists", "count_children", "count_levels", "expand_lists", "keep_levels", "mark_nulls"]

Levels = NDArray[np.uint16]
Flags = NDArray[np.uint8]
Integers = NDArray[np.int64]


@kernel
def keep_levels(levels: Levels, most: int, out: Levels) -> int:
    """Copy the levels that are at most `most`."""
    count = 0
    for i in range(len(levels)):
        out[count] = levels[i]
        count += levels[i] <= most
    return count


@kernel
def count_levels(levels: Levels, most: int, starts: Integers, stops: Integers, out: Integers) -> None:
    """Count the levels that are at most `most` between each start and stop, which the caller has checked."""
    for i in range(len(starts)):
        count = 0
        for j in range(starts[i], stops[i]):
            count += levels[j] <= most
        out[i] = count


@kernel
def collapse_lists(
    rep: Levels,
    definition: Levels,
    list_level: int,
    item_end: int,
    list_end: int,
    null: int,
    empty: int,
    out_rep: Levels,
    out_definition: Levels,
    offsets: Integers,
    present: Flags,
) -> tuple[int, int]:
    """Fold entries into the lists that they are items of; return how many entries and how many lists are left.

    An entry starts a list where `rep` is at least `list_level`. It is an item where its level is at most `item_end`,
    and its list is there where the level is at most `list_end`; `null` and `empty` are the levels of such lists, 0 for
    never. What starts a list stays, with its levels, for the lists around. `definition` may be empty: all items.
    """
    # Without branches: what is written at a place counts only if the place is then moved on.
    entries, lists, items = 0, 0, 0
    if not len(definition):
        for i in range(len(rep)):
            out_rep[entries] = rep[i]
            offsets[entries] = i
            entries += rep[i] >= list_level
        offsets[entries] = len(rep)
        return entries, entries
    for i in range(len(rep)):
        level, starts = definition[i], rep[i] >= list_level
        out_rep[entries] = rep[i]
        out_definition[entries] = level
        entries += starts
        offsets[lists] = items
        present[lists] = (level < null) | (level == empty)
        lists += starts & (level <= list_end)
        items += level <= item_end
    offsets[lists] = items
    return entries, lists


@kernel
def count_children(offsets: Integers, present: Flags, codes: Levels, slots: Integers) -> int:
    """Count the entries that `expand_lists` makes."""
    total = len(slots)
    for i in range(len(slots)):
        if codes[i] == 0:
            slot = slots[i]
            if (not len(present) or present[slot]) and offsets[slot] < offsets[slot + 1]:
                total += offsets[slot + 1] - offsets[slot] - 1
    return total


@kernel
def expand_lists(
    offsets: Integers,
    present: Flags,
    rep: Levels,
    codes: Levels,
    slots: Integers,
    level: int,
    null_code: int,
    empty_code: int,
    out_rep: Levels,
    out_codes: Levels,
    out_slots: Integers,
) -> None:
    """Replace entries that are lists by one for each of their items.

    Entry `i` is the list in slot `slots[i]` if its code is 0, and has ended outside otherwise. A list without items
    ends here, with a code and no slot. All items but the first repeat at `level`. `present` may be empty: no nulls.
    """
    place = 0
    for i in range(len(slots)):
        code = codes[i]
        start, stop = np.int64(-1), np.int64(-1)
        if code == 0:
            slot = slots[i]
            if len(present) and not present[slot]:
                code = null_code
            else:
                start, stop = offsets[slot], offsets[slot + 1]
                if start == stop:
                    code = empty_code
        out_rep[place] = rep[i]
        out_codes[place] = code
        out_slots[place] = -1 if start == stop else start
        place += 1
        for item in range(start + 1, stop):
            out_rep[place] = level
            out_codes[place] = 0
            out_slots[place] = item
            place += 1


@kernel
def mark_nulls(present: Flags, slots: Integers, code: int, codes: Levels) -> None:
    """Give a code to the entries whose slot holds a null; those that have one already keep theirs."""
    for i in range(len(slots)):
        if codes[i] == 0 and not present[slots[i]]:
            codes[i] = code
