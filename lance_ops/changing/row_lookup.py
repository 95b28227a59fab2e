"""Find the rows of a table that data names by `_rowaddr` or `_rowid`, and refuse a name of no live row.

An address is a name that holds in one version. A stable row id is looked up in the index of row ids.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of, offset_of, row_addr
from lance_ops.core.arrow import numbers_of
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.schema import CaseRule
from lance_ops.reading import ROW_ADDRESS, ROW_COLUMNS, ROW_ID
from lance_ops.snapshot import Snapshot
from lance_ops.table.rows import bitmap_of

__all__ = ["key_and_values", "live_rows", "locate_rows", "named_rows", "names_row_ids"]

_FRAGMENT_ID = "_fragid"  # what reads of Spark call the fragment's id


def key_and_values(names: Iterable[str]) -> tuple[str | None, tuple[str, ...]]:
    """Return the column of data that names rows, or None, and the columns of values. A column that scans add is none.

    An exact spelling wins, then one in any case; `_rowaddr` wins over `_rowid`. Raises `SchemaMismatch` if two names
    of one of them differ only in case.
    """
    listed = tuple(names)
    found = (CaseRule.INSENSITIVE.find(name, listed) for name in (ROW_ADDRESS, ROW_ID))
    key = next((name for name in found if name is not None), None)
    return key, tuple(name for name in listed if name not in (*ROW_COLUMNS, _FRAGMENT_ID, key))


def names_row_ids(key: str) -> bool:
    """Return whether the column that names rows, as `key_and_values` found it, has row ids and not addresses."""
    return key.lower() == ROW_ID


def named_rows(snapshot: Snapshot, keys: pa.ChunkedArray, *, by_id: bool) -> Uint64Array:
    """Return the addresses of the rows that addresses, or with `by_id` row ids, name; in the order of the keys.

    Raises `InvalidInput` as `locate_rows` and `live_rows` do.
    """
    addresses = locate_rows(snapshot, keys, by_id=by_id)
    live_rows(snapshot, np.sort(addresses))
    return addresses


def locate_rows(snapshot: Snapshot, keys: pa.ChunkedArray, *, by_id: bool) -> Uint64Array:
    """Return the address that each key names. Whether an address has a row is not looked at: `live_rows` checks it.

    Raises `InvalidInput` for a null, and for a stable row id that no row has.
    """
    if keys.null_count:
        key_name = ROW_ID if by_id else ROW_ADDRESS
        raise InvalidInput(f"{keys.null_count} rows of the data have no {key_name}: leave them out")
    named = numbers_of(keys).astype(np.uint64, copy=False)
    if not (by_id and snapshot.manifest.uses_stable_row_ids):
        return named
    found = snapshot.row_id_index.find(named)
    gone = np.flatnonzero(found == np.uint64(TOMBSTONE_ROW))
    if len(gone):
        raise InvalidInput(
            f"{snapshot.uri}: no row of version {snapshot.version} has {ROW_ID} {named[gone[0]]}: it was deleted, "
            "or never there"
        )
    return found


def live_rows(snapshot: Snapshot, ascending: Uint64Array) -> dict[int, BitMap]:
    """Check that sorted addresses are of live rows, and return their offsets by fragment.

    Raises `InvalidInput` if two addresses are the same, or if one is no live row.
    """
    _check_once(ascending)
    ids, starts = np.unique(fragment_of(ascending), return_index=True)
    ends = np.append(starts, len(ascending))[1:]
    return {
        int(fragment_id): _check_live(snapshot, int(fragment_id), ascending[start:end])
        for fragment_id, start, end in zip(ids, starts, ends, strict=True)
    }


def _check_once(ascending: Uint64Array) -> None:
    twice = np.flatnonzero(ascending[1:] == ascending[:-1])
    if len(twice):
        raise InvalidInput(
            f"several rows of the data name the same row, such as {_shown(int(ascending[twice[0]]))}: leave one of them"
        )


def _check_live(snapshot: Snapshot, fragment_id: int, addresses: Uint64Array) -> BitMap:
    """Return the offsets of the rows at these addresses; raise `InvalidInput` if one is no live row."""
    fragment, offsets = snapshot.fragments_by_id.get(fragment_id), offset_of(addresses)
    version = f"version {snapshot.version} of {snapshot.uri}"
    if fragment is None:
        raise InvalidInput(
            f"{version} has no fragment of {_shown(int(addresses[0]))}: read the addresses from this version"
        )
    if offsets[-1] >= fragment.physical_rows:
        raise InvalidInput(f"{version} has no row at {_shown(int(addresses[-1]))}: the fragment has fewer rows")
    rows = bitmap_of(offsets)
    deleted = rows & snapshot.deletion_vector(fragment)
    if deleted:
        raise InvalidInput(
            f"{len(deleted)} rows that the data names are deleted in {version}, such as "
            f"{_shown(row_addr(fragment_id, deleted.min()))}: leave them out"
        )
    return rows


def _shown(address: int) -> str:
    return f"{ROW_ADDRESS} {address} (fragment {fragment_of(address)}, row {offset_of(address)})"
