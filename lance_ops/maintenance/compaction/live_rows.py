"""Read the live rows of fragments, in order, for a rewrite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby

import numpy as np
import pyarrow as pa

from lance_ops.blobs import scan_to_rewrite
from lance_ops.core.arrow import rows_where
from lance_ops.core.threads import available_cores, map_ordered
from lance_ops.file import row_bytes
from lance_ops.reading import TASK_READAHEAD, ScanRequest, in_task, read_fragments_together
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import offsets_in

__all__ = ["live_rows"]

_JOINED_BYTES = 8 << 20
"""Size of the files that are read together, or of their decoded values if those are larger."""

_SMALL_BYTES = _JOINED_BYTES // 2
"""Larger files are read one by one, since a joint read gains little."""


def live_rows(snapshot: Snapshot, fragments: Iterable[Fragment]) -> Iterator[pa.Table]:
    """Yield the live rows as `FragmentWriter` takes them; small files in a local store are read several at a time."""
    min_row_bytes = sum(row_bytes(field.arrow_type) for field in snapshot.schema.fields)

    def size(fragment: Fragment) -> int:
        return max(sum(file.file_size_bytes for file in fragment.files), fragment.physical_rows * min_row_bytes)

    def is_small(fragment: Fragment) -> bool:
        return snapshot.store.reads_in_place and len(fragment.files) == 1 and size(fragment) <= _SMALL_BYTES

    for are_small, neighbours in groupby(fragments, is_small):
        if are_small:
            groups = list(_groups(neighbours, size))
            workers = min(available_cores(), TASK_READAHEAD, len(groups))
            tables = map_ordered(lambda group: _read_group(snapshot, group), groups, workers, TASK_READAHEAD)
            yield from chain.from_iterable(tables)
        else:
            yield from _scanned(snapshot, list(neighbours))


def _groups(fragments: Iterable[Fragment], size: Callable[[Fragment], int]) -> Iterator[list[Fragment]]:
    """Yield groups of neighbours; a group ends when it reaches `_JOINED_BYTES`."""
    group: list[Fragment] = []
    total = 0
    for fragment in fragments:
        group.append(fragment)
        total += size(fragment)
        if total >= _JOINED_BYTES:
            yield group
            group, total = [], 0
    if group:
        yield group


def _read_group(snapshot: Snapshot, fragments: list[Fragment]) -> Iterable[pa.Table]:
    """Read all rows of the fragments together, or fragment by fragment if that is not possible."""
    table = read_fragments_together(snapshot, fragments, snapshot.schema)
    return _scanned(snapshot, fragments) if table is None else [_live(snapshot, fragments, table)]


def _live(snapshot: Snapshot, fragments: Sequence[Fragment], table: pa.Table) -> pa.Table:
    """Return the live rows of a table that holds all physical rows of the fragments."""
    live = np.ones(table.num_rows, np.bool_)
    first = 0
    for fragment in fragments:
        if fragment.deletion_file is not None:
            deleted = offsets_in(snapshot.deletion_vector(fragment))
            live[first + deleted[deleted < fragment.physical_rows].astype(np.int64)] = False
        first += fragment.physical_rows
    return table if live.all() else rows_where(table, live)


def _scanned(snapshot: Snapshot, fragments: Sequence[Fragment]) -> Iterator[pa.Table]:
    ids = tuple(fragment.id for fragment in fragments)
    request = in_task(snapshot, ScanRequest(snapshot.schema, fragment_ids=ids))
    return (rows.table for rows in scan_to_rewrite(snapshot, request))
