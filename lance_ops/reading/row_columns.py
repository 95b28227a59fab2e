"""Columns that a scan can add: row id, address, position, and the versions that created and last updated the row."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from lance_ops.core.addresses import row_addrs
from lance_ops.core.arrow import array_of_numbers
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import offsets_in

__all__ = [
    "ROW_ADDRESS",
    "ROW_COLUMNS",
    "ROW_CREATED_AT_VERSION",
    "ROW_ID",
    "ROW_LAST_UPDATED_AT_VERSION",
    "ROW_OFFSET",
    "SELECTABLE_ROW_COLUMNS",
    "VERSION_COLUMNS",
    "row_column",
    "row_field",
]

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
ROW_CREATED_AT_VERSION = "_row_created_at_version"
ROW_LAST_UPDATED_AT_VERSION = "_row_last_updated_at_version"

VERSION_COLUMNS = (ROW_CREATED_AT_VERSION, ROW_LAST_UPDATED_AT_VERSION)
ROW_COLUMNS = (ROW_ID, ROW_ADDRESS, *VERSION_COLUMNS)
"""The row columns that every filter and every expression may read."""

ROW_OFFSET = "_rowoffset"
"""The position of a row among all live rows of the version, as `take` counts it.

Only filters of scans may read it. A change of rows that is planned again would find other rows at these positions.
"""

SELECTABLE_ROW_COLUMNS = (*ROW_COLUMNS, ROW_OFFSET)
"""The row columns that scans and takes can return, and that filters of scans may read."""


def _positions(snapshot: Snapshot, fragment: Fragment, offsets: Uint64Array) -> Uint64Array:
    deleted = offsets_in(snapshot.deletion_vector(fragment))
    positions = offsets - np.searchsorted(deleted, offsets).astype(np.uint64)
    return positions + np.uint64(snapshot.first_positions[fragment.id])


_VALUES: Mapping[str, Callable[[Snapshot, Fragment, Uint64Array], Uint64Array]] = {
    ROW_ID: lambda snapshot, fragment, offsets: snapshot.row_ids(fragment, offsets),
    ROW_ADDRESS: lambda snapshot, fragment, offsets: row_addrs(fragment.id, offsets),
    ROW_CREATED_AT_VERSION: lambda snapshot, fragment, offsets: snapshot.lineage(fragment).created_at_versions.at(
        offsets
    ),
    ROW_LAST_UPDATED_AT_VERSION: lambda snapshot, fragment, offsets: snapshot.lineage(
        fragment
    ).last_updated_at_versions.at(offsets),
    ROW_OFFSET: _positions,
}


def row_field(name: str) -> pa.Field:
    """Return the field of a row column."""
    return pa.field(name, pa.uint64())


def row_column(
    snapshot: Snapshot, name: str, fragment: Fragment, offsets: Uint64Array, *, null_if_deleted: bool = False
) -> pa.Array:
    """Return a row column for the rows at physical offsets; with `null_if_deleted` the id of a deleted row is null."""
    is_null = None
    if null_if_deleted and name == ROW_ID:
        deleted = snapshot.deletion_vector(fragment)
        is_null = np.isin(offsets, offsets_in(deleted))
    return array_of_numbers(_VALUES[name](snapshot, fragment, offsets), is_null)
