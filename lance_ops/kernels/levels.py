"""Steps from repetition and definition levels to lists; `lance_ops.file.v2_1.levels` says what they mean.

Levels are u16, one an entry. Outputs are as long as the caller could have to keep; how much of them was used is
returned.
"""

from __future__ import annotations

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint16Array
from lance_ops.kernels.jit import kernel

__all__ = ["collapse_lists", "keep_levels"]


@kernel
def keep_levels(levels: Uint16Array, most: int, out: Uint16Array) -> int:
    """Copy the levels that are at most `most`."""
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
