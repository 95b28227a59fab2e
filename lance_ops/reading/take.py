"""Take rows by position among the live rows, by row id, or by address.

Only the columns of a `ScanRequest` apply to a take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of, offset_of, row_addrs
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint64Array
from lance_ops.core.schema import Schema
from lance_ops.core.threads import map_ordered
from lance_ops.file import reorder
from lance_ops.reading.joined_fragments import read_fragments_together
from lance_ops.reading.scan_execution import empty_answer
from lance_ops.reading.scan_plan import ScanRequest
from lance_ops.reading.scanned_rows import with_row_columns
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import bitmap_of, offsets_in

__all__ = ["take_addresses", "take_positions", "take_row_ids"]


_Group: TypeAlias = tuple[Fragment, Uint64Array]
"""A fragment and physical offsets in it."""

_READ_AHEAD = 16

_MAX_JOINED_ROWS = 256
"""Most rows of a fragment that are read together with other fragments; for more, decoding in threads is faster."""


def take_positions(snapshot: Snapshot, positions: Int64Array, request: ScanRequest) -> pa.Table:
    """Return rows by their position among all live rows, in the order of `positions`, repeats included.

    Raises `InvalidInput` for a position outside the table.
    """
    fragments, ends = snapshot.fragments, snapshot.live_row_ends
    num_rows = int(ends[-1]) if len(ends) else 0
    if len(positions) and not 0 <= positions.min() <= positions.max() < num_rows:
        raise InvalidInput(f"{snapshot.uri} has {num_rows} rows: positions must lie in 0 to {num_rows - 1}")
    slots = np.searchsorted(ends, positions, side="right")
    addresses = np.empty(len(positions), dtype=np.uint64)
    groups = [(slot, fragments[slot], requested) for slot, requested in _grouped(slots)]
    snapshot.read_deletion_vectors(fragment for _, fragment, _ in groups)
    for slot, fragment, requested in groups:
        within = positions[requested] - (ends[slot - 1] if slot else 0)
        addresses[requested] = row_addrs(fragment.id, snapshot.live_offsets_at(fragment, within))
    return _take(snapshot, addresses, request)


def take_row_ids(
    snapshot: Snapshot, row_ids: Uint64Array, request: ScanRequest, *, require_all: bool = False
) -> pa.Table:
    """Return rows by row id, in the order of `row_ids`, repeats included.

    Ids without a live row are left out, or with `require_all` raise `InvalidInput`. It is raised for an address beyond
    its fragment too, in a table whose row ids are addresses.
    """
    addresses, live = _locate_row_ids(snapshot, row_ids)
    if require_all and not live.all():
        first = row_ids[~live][0]
        raise InvalidInput(f"{snapshot.uri}: row id {first} has no row; {live.sum()} of {len(live)} row ids have one")
    return _take(snapshot, addresses[live], request)


def _locate_row_ids(snapshot: Snapshot, row_ids: Uint64Array) -> tuple[Uint64Array, BoolArray]:
    """Return the addresses of row ids, and which of them have a live row."""
    if snapshot.manifest.uses_stable_row_ids:
        found = snapshot.row_id_index.find(row_ids)
        return found, found != np.uint64(TOMBSTONE_ROW)
    live = np.zeros(len(row_ids), dtype=np.bool_)
    owners, offsets = fragment_of(row_ids), offset_of(row_ids)
    for fragment_id, fragment, selected in _by_fragment(snapshot, owners):
        if fragment is not None:
            beyond = offsets[selected] >= fragment.physical_rows
            if beyond.any():
                raise InvalidInput(f"{snapshot.uri}: no row at an address in fragment {fragment_id}")
            deleted = snapshot.deletion_vector(fragment)
            live[selected] = ~np.isin(offsets[selected], offsets_in(deleted))
    return row_ids, live


def take_addresses(snapshot: Snapshot, addresses: Uint64Array, request: ScanRequest) -> pa.Table:
    """Return live rows by address, in the order of `addresses`.

    Raises `InvalidInput` for an address without a live row.
    """
    owners, offsets = fragment_of(addresses), offset_of(addresses)
    for fragment_id, fragment, selected in _by_fragment(snapshot, owners):
        requested = bitmap_of(offsets[selected])
        if fragment is None or requested.max() >= fragment.physical_rows:
            raise InvalidInput(f"{snapshot.uri}: no row at an address in fragment {fragment_id}")
        deleted = requested & snapshot.deletion_vector(fragment)
        if deleted:
            raise InvalidInput(f"{snapshot.uri}: row {deleted.min()} of fragment {fragment_id} is deleted")
    return _take(snapshot, addresses, request)


def _by_fragment(snapshot: Snapshot, owners: Uint64Array) -> list[tuple[int, Fragment | None, Int64Array]]:
    """Return each fragment id, its fragment if there is one, and the positions of the id in `owners`.

    The fragments' deletion vectors have been read, side by side.
    """
    groups = [(key, snapshot.fragments_by_id.get(key), selected) for key, selected in _grouped(owners)]
    snapshot.read_deletion_vectors(fragment for _, fragment, _ in groups if fragment is not None)
    return groups


def _take(snapshot: Snapshot, addresses: Uint64Array, request: ScanRequest) -> pa.Table:
    """Read each distinct row once, in ascending order, and return the rows in the order of `addresses`."""
    unique, inverse = _distinct(addresses)
    offsets = offset_of(unique)
    groups = [
        (snapshot.fragments_by_id[fragment_id], offsets[selected])
        for fragment_id, selected in _grouped(fragment_of(unique))
    ]
    found = _read_joined(snapshot, groups, request.schema)
    if found is None or request.row_columns:
        tables = _read_separately(snapshot, groups, request.schema) if found is None else _split(found, groups)
        found = pa.concat_tables(
            [
                with_row_columns(snapshot, table, fragment, within, request.row_columns)
                for table, (fragment, within) in zip(tables, groups, strict=True)
            ]
            or [empty_answer(request)]
        )
    return found if inverse is None else reorder(found, inverse)


def _read_separately(snapshot: Snapshot, groups: Sequence[_Group], schema: Schema) -> Iterator[pa.Table]:
    """Yield the rows of each fragment, several fragments at once."""

    def read(group: _Group) -> pa.Table:
        fragment, offsets = group
        return snapshot.reader(fragment).take(schema, offsets)

    return map_ordered(read, groups, min(snapshot.calls_at_once, len(groups)), _READ_AHEAD)


def _read_joined(snapshot: Snapshot, groups: Sequence[_Group], schema: Schema) -> pa.Table | None:
    """Return few rows of several fragments in one read; None if they are too many or must be read separately."""
    if len(groups) < 2 or max(len(offsets) for _, offsets in groups) > _MAX_JOINED_ROWS or not schema.fields:
        return None
    fragments = [fragment for fragment, _ in groups]
    return read_fragments_together(snapshot, fragments, schema, [offsets for _, offsets in groups])


def _split(table: pa.Table, groups: Sequence[_Group]) -> list[pa.Table]:
    """Return the rows of each group, given the rows of all groups."""
    counts = [len(offsets) for _, offsets in groups]
    firsts = accumulate(counts, initial=0)
    return [table.slice(first, count) for first, count in zip(firsts, counts, strict=False)]


def _distinct(addresses: Uint64Array) -> tuple[Uint64Array, Int64Array | None]:
    """Return the distinct addresses in ascending order, and the position of each given address among them.

    The positions are None if the addresses are ascending and distinct already. numpy's `unique` hashes before it sorts,
    which takes longer.
    """
    if len(addresses) < 2 or (addresses[1:] > addresses[:-1]).all():
        return addresses, None
    order = np.argsort(addresses, kind="stable")
    ascending = addresses[order]
    is_first = np.append(True, ascending[1:] != ascending[:-1])
    inverse = np.empty(len(addresses), np.int64)
    inverse[order] = np.cumsum(is_first) - 1
    return ascending[is_first], inverse


def _grouped(keys: Uint64Array | Int64Array) -> list[tuple[int, Int64Array]]:
    """Return each key, ascending, with its positions in `keys`, ascending."""
    if len(keys) and (keys == keys[0]).all():
        return [(int(keys[0]), np.arange(len(keys)))]
    positions = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[positions], prepend=keys[positions][:1] ^ keys.dtype.type(1)))
    return [(int(keys[positions[start]]), positions[start:stop]) for start, stop in pairwise([*starts, len(keys)])]
