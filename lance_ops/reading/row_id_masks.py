"""Rows by id, given from outside: those to look at, and those to leave out.

    u32 count, then for each: u32 high half of the ids, u32 size, a roaring bitmap of that size: the low halves

little-endian. A size of 0 stands for all ids with that high half. (`RowAddrTreeMap::serialize_into` of the reference;
its `serialize_row_addrs` makes one.)
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from pyroaring import BitMap

from lance_ops.core.addresses import fragment_of, offset_of
from lance_ops.core.errors import InvalidInput
from lance_ops.indices import RowAddressSet
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import bitmap_of, decode_bitmap, offsets_in

__all__ = ["allowed_rows"]

Mask: TypeAlias = Mapping[int, BitMap | None]
"""The low halves of ids by their high half; None means all."""


def allowed_rows(snapshot: Snapshot, allowed: bytes | None, blocked: bytes | None) -> RowAddressSet | None:
    """Return where the allowed rows are that are not blocked; None if neither is given.

    Raises `InvalidInput` for bytes that are no mask.
    """
    if allowed is None and blocked is None:
        return None
    allow = None if allowed is None else _decode(allowed, "row_addr_allowlist")
    block = {} if blocked is None else _decode(blocked, "row_addr_blocklist")
    rows = {}
    for fragment in snapshot.fragments:
        every = BitMap(range(fragment.physical_rows))
        kept = every if allow is None else _rows_of(snapshot, fragment, every, allow)
        rows[fragment.id] = kept - _rows_of(snapshot, fragment, every, block)
    return RowAddressSet.from_bitmaps(rows)


def _rows_of(snapshot: Snapshot, fragment: Fragment, every: BitMap, mask: Mask) -> BitMap:
    """Return the offsets of a fragment's rows that are in a mask."""
    if not snapshot.manifest.uses_stable_row_ids:
        found = mask.get(fragment.id, BitMap())
        return every if found is None else every & found
    row_ids = snapshot.row_ids(fragment, np.arange(fragment.physical_rows, dtype=np.uint64))
    high, low = fragment_of(row_ids), offset_of(row_ids)
    inside = np.zeros(len(row_ids), dtype=np.bool_)
    for part, bitmap in mask.items():
        inside |= (high == part) & (True if bitmap is None else np.isin(low, offsets_in(bitmap)))
    return bitmap_of(np.flatnonzero(inside))


def _decode(data: bytes, name: str) -> Mask:
    try:
        (count,) = struct.unpack_from("<I", data)
        at, mask = 4, {}
        for _ in range(count):
            part, size = struct.unpack_from("<II", data, at)
            at += 8 + size
            if at > len(data):
                raise ValueError(f"{at - len(data)} bytes missing")
            mask[part] = decode_bitmap(data[at - size : at], name, f"ids of {part}") if size else None
    except (struct.error, ValueError, TypeError) as error:
        raise InvalidInput(f"{name} is no serialized set of row addresses: {error}") from error
    return mask
