"""Turn repetition and definition levels into lists, one layer at a time; see `lance_ops.file.v2_1.levels`.

Levels are u16, one for each entry. The caller makes outputs as long as they can become; the kernels return how much
they used.
"""

from __future__ import annotations

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint16Array
from lance_ops.kernels.compile import kernel

__all__ = ["collapse_lists", "keep_levels"]


@kernel
def keep_levels(levels: Uint16Array, most: int, out: Uint16Array) -> int:
    """Copy the levels that are at most `most`; return how many."""
    count = 0
    for i in range(len(levels)):
        out[count] = levels[i]
        count += levels[i] <= most
    return count


@kernel
def collapse_lists(
    rep: Uint16Array,
    definition: Uint16Array,
    list_level: int,
    item_end: int,
    list_end: int,
    null: int,
    empty: int,
    out_rep: Uint16Array,
    out_definition: Uint16Array,
    offsets: Int64Array,
    present: Uint8Array,
) -> tuple[int, int]:
    """Fold entries into the lists that they are items of; return how many entries and how many lists are left.

    An entry starts a list where `rep` is at least `list_level`. It is an item if its definition level is at most
    `item_end`, and its list exists if the level is at most `list_end`. `null` and `empty` are the levels of null and of
    empty lists, 0 if there are none. Entries that start a list are kept with their levels for the outer layers, unless
    `out_rep` is empty: then no outer layer needs levels.
    """
    # No branches: a write is kept only if the count that follows advances past it.
    entries, lists, items = 0, 0, 0
    if not len(out_rep):
        for i in range(len(rep)):
            level = definition[i]
            offsets[lists] = items
            present[lists] = (level < null) | (level == empty)
            lists += (rep[i] >= list_level) & (level <= list_end)
            items += level <= item_end
        offsets[lists] = items
        return lists, lists
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
