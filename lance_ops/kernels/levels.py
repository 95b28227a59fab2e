"""Steps from repetition and definition levels to lists; `lance_ops.file.v2_1.levels` says what they mean.

Levels are u16, one an entry. Outputs are as long as the caller could have to keep; how much of them was used is
returned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_ops.kernels.jit import kernel

__all__ = ["collapse_lists", "keep_levels"]

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
    never. What starts a list stays, with its levels, for the layers around, unless `out_rep` is empty: nothing around
    asks for levels. `definition` may be empty: all items.
    """
    # Without branches: what is written at a place counts only if the place is then moved on.
    entries, lists, items = 0, 0, 0
    if len(definition) and not len(out_rep):
        for i in range(len(rep)):
            level = definition[i]
            offsets[lists] = items
            present[lists] = (level < null) | (level == empty)
            lists += (rep[i] >= list_level) & (level <= list_end)
            items += level <= item_end
        offsets[lists] = items
        return lists, lists
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
