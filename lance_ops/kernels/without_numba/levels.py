"""Twins of the kernels that write levels; see `lance_ops.kernels.levels`."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint16Array

__all__ = ["mark_nulls", "renumber_levels"]


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
    going_on = codes == 0
    if not len(slots):
        has_slot = going_on | (codes > ended)
        slots = first_slot + np.cumsum(has_slot) - has_slot
    asked = np.flatnonzero(going_on)
    is_null = asked[present[slots[asked]] == 0]
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
