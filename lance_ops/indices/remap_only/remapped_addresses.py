"""Replace the row addresses in a column of an index file by the rows' new addresses.

remap_single_addresses    u64       one address for each entry; the entry of a deleted row keeps its address
remap_address_trees       binary    a set for each entry, in the form of `row_address_tree`; deleted rows leave it
remap_treemaps            binary    a set for each entry, as a Roaring treemap; deleted rows leave it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of, offset_of, row_addrs
from lance_ops.core.arrow import array_of_numbers, numbers_of
from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.table.rows import (
    RowAddressMap,
    bitmap_of,
    decode_address_tree,
    decode_treemap,
    encode_address_tree,
    encode_treemap,
    offsets_in,
)

__all__ = ["Remap", "remap_address_tree", "remap_address_trees", "remap_single_addresses", "remap_treemaps"]

Remap: TypeAlias = Callable[[pa.Array, RowAddressMap, str], pa.Array]
"""Return a column with the rows' new addresses; the text names the file in errors."""


def remap_single_addresses(addresses: pa.Array, moves: RowAddressMap, path: str) -> pa.Array:
    """Return u64 addresses, shape (n,), with nulls where they were.

    The address of a deleted row stays. The table no longer has its fragment, and the index's bitmap still does, so
    readers skip the entry.
    """
    if addresses.type != pa.uint64():
        raise CorruptFile(path, "row addresses", f"numbers of type {addresses.type}, not uint64")
    before: Uint64Array = numbers_of(addresses.fill_null(TOMBSTONE_ROW))
    after = _moved(before, moves, path)
    moved = array_of_numbers(np.where(after == TOMBSTONE_ROW, before, after))
    return pc.if_else(addresses.is_valid(), moved, addresses) if addresses.null_count else moved


def remap_address_trees(sets: pa.Array, moves: RowAddressMap, path: str) -> pa.Array:
    """Return sets of addresses in the form of `row_address_tree`, without those of deleted rows."""
    return pa.array(
        [None if each is None else remap_address_tree(each, moves, path) for each in sets.to_pylist()], sets.type
    )


def remap_treemaps(sets: pa.Array, moves: RowAddressMap, path: str) -> pa.Array:
    """Return Roaring treemaps of addresses, without those of deleted rows."""
    found = (
        None if each is None else encode_treemap(_moved_rows(decode_treemap(each, path, "rows"), moves, path))
        for each in sets.to_pylist()
    )
    return pa.array(list(found), sets.type)


def remap_address_tree(rows: bytes | memoryview, moves: RowAddressMap, path: str) -> bytes:
    """Return one set of addresses in the form of `row_address_tree`, without those of deleted rows."""
    listed: dict[int, BitMap] = {}
    whole: dict[int, BitMap | None] = {}
    for fragment_id, offsets in decode_address_tree(rows, path, "rows").items():
        listed_rows = _all_rows(fragment_id, moves) if offsets is None else offsets
        if listed_rows is not None:
            listed[fragment_id] = listed_rows
        elif moves.fragments is None or fragment_id in moves.fragments:
            whole[fragment_id] = None
    return encode_address_tree(whole | _moved_rows(listed, moves, path))


def _all_rows(fragment_id: int, moves: RowAddressMap) -> BitMap | None:
    """Return the offsets of all rows of a fragment that the moves rewrite; None for any other fragment."""
    old = (each for group in moves.groups for each in group.old if each.fragment_id == fragment_id)
    return next((BitMap(range(each.physical_rows)) for each in old), None)


def _moved_rows(rows: Mapping[int, BitMap], moves: RowAddressMap, path: str) -> dict[int, BitMap]:
    before = [row_addrs(fragment_id, offsets_in(offsets)) for fragment_id, offsets in rows.items()]
    after = _moved(np.concatenate([np.empty(0, np.uint64), *before]), moves, path)
    after = np.sort(after[after != TOMBSTONE_ROW])
    fragments, firsts = np.unique(fragment_of(after), return_index=True)
    parts = np.split(offset_of(after), firsts[1:])
    return {fragment_id: bitmap_of(part) for fragment_id, part in zip(fragments.tolist(), parts, strict=False)}


def _moved(addresses: Uint64Array, moves: RowAddressMap, path: str) -> Uint64Array:
    try:
        return moves.remap(addresses)
    except InvalidInput as error:
        raise CorruptFile(path, "row addresses", str(error)) from error
