"""Twins of the kernels that make levels of lists and lists of levels; see `lance_ops.kernels.levels`."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint16Array

__all__ = ["collapse_lists", "count_children", "expand_lists", "keep_levels", "mark_nulls", "renumber_levels"]


def keep_levels(levels: Uint16Array, most: int, out: Uint16Array) -> int:
    """Do what the kernel `keep_levels` does.

    It compares all levels at once.
    """
    kept = levels[levels <= most]
    out[: len(kept)] = kept
    return len(kept)


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
    """Do what the kernel `collapse_lists` does.

    It finds the starts of all lists at once. Lists have many items, so what it does for each start takes little.
    """
    starts = np.flatnonzero(rep >= list_level)
    levels = definition[starts]
    if len(out_rep):
        out_rep[: len(starts)], out_definition[: len(starts)] = rep[starts], levels
    is_list = levels <= list_end
    lists, levels = starts[is_list], levels[is_list]
    others = np.flatnonzero(definition > item_end)  # entries that are no items: few, or as many as lists
    offsets[: len(lists)] = lists - np.searchsorted(others, lists)
    offsets[len(lists)] = len(definition) - len(others)
    present[: len(lists)] = (levels < null) | (levels == empty)
    return len(starts) if len(out_rep) else len(lists), len(lists)


def count_children(
    offsets: Int64Array, present: Uint8Array, codes: Uint16Array, slots: Int64Array, first_slot: int, ended: int
) -> tuple[int, int, int, bool]:
    """Do what the kernel `count_children` does.

    It compares the ends of all lists at once.
    """
    _, starts, stops = _lists_of(offsets, present, codes, slots, first_slot, ended)
    is_filled = starts != stops
    starts, stops = starts[is_filled], stops[is_filled]
    num_items = int((stops - starts).sum())
    is_run = bool((starts[1:] == stops[:-1]).all())
    return len(codes) + num_items - len(starts), num_items, int(starts[0]) if len(starts) else 0, is_run


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
) -> int:
    """Do what the kernel `expand_lists` does.

    It places the first entries of all lists at once, on entries that repeat.
    """
    entries, starts, stops = _lists_of(offsets, present, codes, slots, first_slot, ended)
    is_empty = starts == stops
    sizes, first_items = np.ones(len(codes), np.int64), np.full(len(codes), -1)
    sizes[entries] = np.maximum(stops - starts, 1)
    first_items[entries] = np.where(is_empty, -1, starts)
    places = np.cumsum(sizes) - sizes
    endings = np.where(codes == 0, null_code, codes)
    endings[entries] = np.where(is_empty, empty_code, 0)
    occurs[null_code] |= len(entries) < np.count_nonzero(codes == 0)
    occurs[empty_code] |= is_empty.any()
    out_rep[:], out_codes[:] = level, 0
    out_rep[places], out_codes[places] = rep, endings
    if len(out_slots):
        out_slots[:] = np.arange(len(out_slots)) - np.repeat(places - first_items, sizes)
    return len(codes)


def mark_nulls(
    present: Uint8Array,
    slots: Int64Array,
    first_slot: int,
    ended: int,
    code: int,
    codes: Uint16Array,
    occurs: Uint8Array,
) -> int:
    """Do what the kernel `mark_nulls` does.

    It looks up all entries at once.
    """
    asked = np.flatnonzero(codes == 0)
    is_null = asked[present[_slots_of(codes, slots, first_slot, ended)[asked]] == 0]
    codes[is_null] = code
    if len(is_null):
        occurs[code] = 1
    return len(codes)


def renumber_levels(codes: Uint16Array, levels: Uint16Array) -> int:
    """Do what the kernel `renumber_levels` does.

    It looks up all codes at once.
    """
    codes[:] = levels[codes]
    return len(codes)


def _slots_of(codes: Uint16Array, slots: Int64Array, first_slot: int, ended: int) -> Int64Array:
    """Return the slot of each entry, and anything for entries without one."""
    if len(slots):
        return slots
    has_slot = (codes == 0) | (codes > ended)
    found: Int64Array = first_slot + np.cumsum(has_slot) - has_slot
    return found


def _lists_of(
    offsets: Int64Array, present: Uint8Array, codes: Uint16Array, slots: Int64Array, first_slot: int, ended: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the entries that are lists and not null, and where the items of each begin and end."""
    entries = np.flatnonzero(codes == 0)
    places = _slots_of(codes, slots, first_slot, ended)[entries]
    if len(present):
        is_there = present[places] != 0
        entries, places = entries[is_there], places[is_there]
    return entries, offsets[places], offsets[places + 1]
