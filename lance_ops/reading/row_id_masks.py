"""Decode a caller's allow list and block list of row ids, and find the rows that they let through.

The reference makes such lists in `serialize_row_addrs`; see `row_address_tree` for their bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from pyroaring import BitMap

from lance_ops.core.addresses import fragment_of, offset_of
from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.indices import RowAddressSet
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import bitmap_of, decode_address_tree, offsets_in

__all__ = ["allowed_rows"]

Mask: TypeAlias = Mapping[int, BitMap | None]
"""The low halves of ids by their high half; None means all."""


def allowed_rows(snapshot: Snapshot, allowed: bytes | None, blocked: bytes | None) -> RowAddressSet | None:
    """Return the addresses of the rows that are allowed and not blocked; None if neither list is given.

    Raises `InvalidInput` for bytes that are not a serialized mask.
    """
    if allowed is None and blocked is None:
        return None
    allow = None if allowed is None else _decode(allowed, "row_addr_allowlist")
    block = {} if blocked is None else _decode(blocked, "row_addr_blocklist")
    rows = {}
    for fragment in snapshot.fragments:
        all_offsets = BitMap(range(fragment.physical_rows))
        kept = all_offsets if allow is None else _rows_of(snapshot, fragment, all_offsets, allow)
        rows[fragment.id] = kept - _rows_of(snapshot, fragment, all_offsets, block)
    return RowAddressSet.from_bitmaps(rows)


def _rows_of(snapshot: Snapshot, fragment: Fragment, all_offsets: BitMap, mask: Mask) -> BitMap:
    """Return the offsets of a fragment's rows that are in a mask."""
    if not snapshot.manifest.uses_stable_row_ids:
        found = mask.get(fragment.id, BitMap())
        return all_offsets if found is None else all_offsets & found
    row_ids = snapshot.row_ids(fragment, np.arange(fragment.physical_rows, dtype=np.uint64))
    high_halves, low_halves = fragment_of(row_ids), offset_of(row_ids)
    inside = np.zeros(len(row_ids), dtype=np.bool_)
    for high, bitmap in mask.items():
        inside |= (high_halves == high) & (True if bitmap is None else np.isin(low_halves, offsets_in(bitmap)))
    return bitmap_of(np.flatnonzero(inside))


def _decode(data: bytes, name: str) -> Mask:
    try:
        return decode_address_tree(data, name, "row ids")
    except (CorruptFile, TypeError) as error:
        raise InvalidInput(f"{name} is not a serialized set of row addresses: {error}") from error
