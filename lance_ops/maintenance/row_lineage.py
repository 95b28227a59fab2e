"""Give rewritten rows, in a table of stable row ids, the ids and versions they had where they came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_ops.core.errors import InvalidInput
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.row_ids import encode_row_ids, encode_versions

__all__ = ["with_lineage"]

U64s: TypeAlias = npt.NDArray[np.uint64]


def with_lineage(snapshot: Snapshot, old: Sequence[Fragment], new: Sequence[Fragment]) -> tuple[Fragment, ...]:
    """Return the new fragments with what is known of their rows: the live ones of the old fragments, in that order.

    Raises `InvalidInput` if they are not as many.
    """
    ids = _live(snapshot, old, snapshot.row_ids)
    created = _live(snapshot, old, lambda fragment, at: snapshot.lineage(fragment).created_at_versions.at(at))
    updated = _live(snapshot, old, lambda fragment, at: snapshot.lineage(fragment).last_updated_at_versions.at(at))
    if len(ids) != sum(fragment.physical_rows for fragment in new):
        raise InvalidInput(f"{snapshot.uri}: {len(ids)} rows were rewritten as another number of rows")
    ends = np.cumsum([fragment.physical_rows for fragment in new])[:-1]
    parts = zip(new, *(np.split(values, ends) for values in (ids, created, updated)), strict=True)
    return tuple(
        replace(
            fragment,
            row_ids=encode_row_ids(row_ids),
            created_at_versions=encode_versions(created_at),
            last_updated_at_versions=encode_versions(updated_at),
        )
        for fragment, row_ids, created_at, updated_at in parts
    )


def _live(snapshot: Snapshot, fragments: Sequence[Fragment], values: Callable[[Fragment, U64s], U64s]) -> U64s:
    """Return one value for each live row."""
    parts = [values(fragment, snapshot.live_offsets(fragment)) for fragment in fragments]
    return np.concatenate([np.empty(0, np.uint64), *parts])
