"""Random access: rows by position among the live rows, by row id, or by address.

Of a request only the columns count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of, offset_of, row_addrs
from lance_ops.core.errors import InvalidInput
from lance_ops.core.map_ordered import map_ordered
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.schema import Schema
from lance_ops.file import RowSet, reorder
from lance_ops.reading.joined_fragments import read_fragments_together
from lance_ops.reading.scan_execution import ScanRequest, empty_answer
from lance_ops.reading.scanned_rows import with_row_columns
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import bitmap_of, offsets_in

__all__ = ["take_addresses", "take_positions", "take_row_ids"]


_Group: TypeAlias = tuple[Fragment, Uint64Array]
"""A fragment and offsets of rows in it."""

_READ_AHEAD = 16

_FEW_ROWS = 256
"""Of more rows in a fragment it is the decoding that takes the time, and several threads do that."""


def take_positions(snapshot: Snapshot, positions: Int64Array, request: ScanRequest) -> pa.Table:
    """Return rows by their position among all live rows, in the order asked for, repeats included.

    Raises `InvalidInput` for a position beyond the rows there are.
    """
    fragments = snapshot.fragments
    ends = np.cumsum([snapshot.num_live_rows(fragment) for fragment in fragments], dtype=np.int64)
    num_rows = int(ends[-1]) if len(ends) else 0
    if len(positions) and not 0 <= positions.min() <= positions.max() < num_rows:
        raise InvalidInput(f"{snapshot.uri} has {num_rows} rows: positions must lie in 0 to {num_rows - 1}")
    slots = np.searchsorted(ends, positions, side="right")
    addresses = np.empty(len(positions), dtype=np.uint64)
    for slot, asked in _grouped(slots):
        fragment = fragments[slot]
        within = positions[asked] - (ends[slot - 1] if slot else 0)
        offsets = snapshot.live_offsets(fragment)[within] if fragment.deletion_file else within
        addresses[asked] = row_addrs(fragment.id, offsets)
    return _take(snapshot, addresses, request)


def take_row_ids(snapshot: Snapshot, row_ids: Uint64Array, request: ScanRequest) -> pa.Table:
    """Return rows by row id, in the order asked for, repeats included; those that are gone are left out.

    Raises `InvalidInput` for an address beyond its fragment, in a table whose row ids are addresses.
    """
    if snapshot.manifest.uses_stable_row_ids:
        found = snapshot.row_id_index.find(row_ids)
        return _take(snapshot, found[found != np.uint64(TOMBSTONE_ROW)], request)
    live = np.zeros(len(row_ids), dtype=np.bool_)
    owners, offsets = fragment_of(row_ids), offset_of(row_ids)
    for fragment_id, places in _grouped(owners):
        fragment = snapshot.fragments_by_id.get(fragment_id)
        if fragment is not None:
            beyond = offsets[places] >= fragment.physical_rows
            if beyond.any():
                raise InvalidInput(f"{snapshot.uri}: no row at an address in fragment {fragment_id}")
            deleted = snapshot.deletion_vector(fragment)
            live[places] = ~np.isin(offsets[places], offsets_in(deleted))
    return _take(snapshot, row_ids[live], request)


def take_addresses(snapshot: Snapshot, addresses: Uint64Array, request: ScanRequest) -> pa.Table:
    """Return live rows by address, in the order asked for.

    Raises `InvalidInput` naming an address that is no live row's.
    """
    owners, offsets = fragment_of(addresses), offset_of(addresses)
    for fragment_id, places in _grouped(owners):
        fragment = snapshot.fragments_by_id.get(fragment_id)
        asked = bitmap_of(offsets[places])
        if fragment is None or asked.max() >= fragment.physical_rows:
            raise InvalidInput(f"{snapshot.uri}: no row at an address in fragment {fragment_id}")
        deleted = asked & snapshot.deletion_vector(fragment)
        if deleted:
            raise InvalidInput(f"{snapshot.uri}: row {deleted.min()} of fragment {fragment_id} is deleted")
    return _take(snapshot, addresses, request)


def _take(snapshot: Snapshot, addresses: Uint64Array, request: ScanRequest) -> pa.Table:
    """Read each fragment's rows in ascending order, once each, and put them into the order asked for."""
    unique, inverse = _distinct(addresses)
    offsets = offset_of(unique)
    groups = [
        (snapshot.fragments_by_id[fragment_id], offsets[places])
        for fragment_id, places in _grouped(fragment_of(unique))
    ]
    found = _of_few(snapshot, groups, request.schema)
    if found is None or request.row_columns:
        tables = _of_each(snapshot, groups, request.schema) if found is None else _parts(found, groups)
        found = pa.concat_tables(
            [
                with_row_columns(snapshot, table, fragment, within, request.row_columns)
                for table, (fragment, within) in zip(tables, groups, strict=True)
            ]
            or [empty_answer(request)]
        )
    return found if inverse is None else reorder(found, inverse)


def _of_each(snapshot: Snapshot, groups: Sequence[_Group], schema: Schema) -> Iterator[pa.Table]:
    """Read the rows of each fragment by themselves."""

    def read(group: _Group) -> pa.Table:
        fragment, offsets = group
        return snapshot.reader(fragment).take(schema, offsets)

    return map_ordered(read, groups, min(snapshot.calls_at_once, len(groups)), _READ_AHEAD)


def _of_few(snapshot: Snapshot, groups: Sequence[_Group], schema: Schema) -> pa.Table | None:
    """Read few rows of many fragments together; return None where they are not so few, or cannot be read so."""
    if len(groups) < 2 or max(len(offsets) for _, offsets in groups) > _FEW_ROWS or not schema.fields:
        return None
    parts = [(fragment, RowSet(offsets.astype(np.int64))) for fragment, offsets in groups]
    return read_fragments_together(snapshot, parts, schema)


def _parts(table: pa.Table, groups: Sequence[_Group]) -> list[pa.Table]:
    """Cut rows of all groups into those of each."""
    counts = [len(offsets) for _, offsets in groups]
    firsts = accumulate(counts, initial=0)
    return [table.slice(first, count) for first, count in zip(firsts, counts, strict=False)]


def _distinct(addresses: Uint64Array) -> tuple[Uint64Array, Int64Array | None]:
    """Return the addresses in ascending order, once each, and where in them each one is; None where all are.

    numpy's `unique` hashes before it sorts, which takes longer.
    """
    if len(addresses) < 2 or (addresses[1:] > addresses[:-1]).all():
        return addresses, None
    order = np.argsort(addresses, kind="stable")
    ascending = addresses[order]
    fresh = np.append(True, ascending[1:] != ascending[:-1])
    inverse = np.empty(len(addresses), np.int64)
    inverse[order] = np.cumsum(fresh) - 1
    return ascending[fresh], inverse


def _grouped(keys: Uint64Array | Int64Array) -> list[tuple[int, Int64Array]]:
    """Return each key, ascending, with the places where it stands, ascending."""
    if len(keys) and (keys == keys[0]).all():
        return [(int(keys[0]), np.arange(len(keys)))]
    places = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[places], prepend=keys[places][:1] ^ keys.dtype.type(1)))
    return [(int(keys[places[start]]), places[start:stop]) for start, stop in pairwise([*starts, len(keys)])]
