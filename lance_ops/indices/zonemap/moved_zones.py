"""Find where zones are after a rewrite of their fragments.

A rewrite keeps the order of the rows, so the surviving rows of a zone are side by side in the new fragments.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import accumulate

import numpy as np
from pyroaring import BitMap

from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of, offset_of, row_addrs
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Int64Array
from lance_ops.indices.zonemap.zones import Zone
from lance_ops.table.rows import OldFragment, RewrittenGroup, RowAddressMap, bitmap_of, offsets_in

__all__ = ["moved_nulls", "moved_zones"]


def moved_zones(
    zones: Iterable[Zone], address_map: RowAddressMap, nulls: Mapping[int, BitMap] | None
) -> Iterator[Zone]:
    """Yield the zones where their rows are; a zone whose rows are in several new fragments is cut.

    `nulls` are the offsets of the nulls after the rewrite, None if they are unknown. Raises `InvalidInput` for a zone
    beyond the rows of its fragment.
    """
    moves: dict[int, Callable[[Zone], Iterator[Zone]]] = {}
    for group in address_map.groups:
        moves.update(_moves_of(group))
    for zone in zones:
        if zone.fragment_id in moves:
            for part in moves[zone.fragment_id](zone):
                yield _with_counts(part, nulls)
        else:
            yield zone


def moved_nulls(nulls: Mapping[int, BitMap], address_map: RowAddressMap) -> dict[int, BitMap]:
    """Return the offsets of the nulls by fragment, after the rewrite."""
    rewritten = address_map.old_fragment_ids
    moved = {fragment_id: bitmap for fragment_id, bitmap in nulls.items() if fragment_id not in rewritten}
    for old_id in rewritten & nulls.keys():
        addresses = address_map.remap(row_addrs(old_id, offsets_in(nulls[old_id])))
        addresses = addresses[addresses != np.uint64(TOMBSTONE_ROW)]
        fragments, offsets = fragment_of(addresses), offset_of(addresses)
        for new_id in np.unique(fragments).tolist():
            moved.setdefault(new_id, BitMap()).update(bitmap_of(offsets[fragments == new_id]))
    return moved


def _moves_of(group: RewrittenGroup) -> dict[int, Callable[[Zone], Iterator[Zone]]]:
    """Return for each old fragment of a group how its zones move."""
    begins = accumulate((fragment.num_rows for fragment in group.old), initial=0)
    ends = list(accumulate(fragment.num_rows for fragment in group.new))
    new_ids = [fragment.fragment_id for fragment in group.new]
    return {
        fragment.fragment_id: partial(
            _moved, fragment, np.asarray(fragment.deleted_offsets, np.int64), begin, new_ids, ends
        )
        for fragment, begin in zip(group.old, begins, strict=False)
    }


def _moved(
    fragment: OldFragment, deleted: Int64Array, begin: int, new_ids: list[int], ends: list[int], zone: Zone
) -> Iterator[Zone]:
    """Yield a zone's surviving rows as zones of the new fragments; `begin` is the fragment's first row in the group."""
    if zone.stop > fragment.physical_rows:
        raise InvalidInput(f"fragment {zone.fragment_id} has no row at offset {zone.stop - 1}")
    first, last = (begin + at - int(np.searchsorted(deleted, at)) for at in (zone.start, zone.stop))
    at = bisect_right(ends, first)
    while first < last:
        base = ends[at - 1] if at else 0
        stop = min(last, ends[at])
        yield replace(zone, fragment_id=new_ids[at], start=first - base, stop=stop - base)
        first, at = stop, at + 1


def _with_counts(zone: Zone, nulls: Mapping[int, BitMap] | None) -> Zone:
    """Return a part of a zone with the number of its own nulls, and with at most as many NaNs as it has rows.

    If the nulls are unknown, their number is at most that of the whole zone, too. Numbers that may be too high do not
    prove that the part has no values.
    """
    num_rows = zone.stop - zone.start
    part = replace(zone, null_count=min(zone.null_count, num_rows), nan_count=min(zone.nan_count, num_rows))
    if nulls is None:
        return part
    null_count = nulls.get(zone.fragment_id, BitMap()).range_cardinality(zone.start, zone.stop)
    return replace(part, null_count=null_count, has_values=zone.has_values and null_count < num_rows)
