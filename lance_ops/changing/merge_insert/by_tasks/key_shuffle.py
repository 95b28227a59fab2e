"""Step 1 of a merge by tasks: read keys, and share them among buckets by their hash.

A key's row address goes with it, and so do the columns of the merge's conditions. Rows with one key are in one bucket,
whichever side they are of. A row with a null in its key matches nothing. The source's are left out, since no bucket
needs them; the target's go to any bucket, if the merge may delete them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lance_ops.blobs import schema_to_write
from lance_ops.changing.merge_insert.by_tasks.bucket_order import order_by_bucket
from lance_ops.changing.merge_insert.by_tasks.merge_parts import Part
from lance_ops.changing.merge_insert.by_tasks.segment_files import SegmentFile, encode_table, write_segments
from lance_ops.changing.merge_insert.by_tasks.source_rows import SourceRows
from lance_ops.changing.merge_insert.matching import source_columns, target_request
from lance_ops.changing.merge_insert.merge_request import BoundMerge, key_columns
from lance_ops.changing.source_keys import key_hashes
from lance_ops.core.arrow import array_of_numbers, rows_at
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.reading import ScannedRows, scan_rows
from lance_ops.snapshot import SnapshotReference
from lance_ops.store import Store

__all__ = ["ADDRESS", "KeyBuckets", "ShuffleTask", "shuffle_keys"]

ADDRESS = "__row_address"
"""The column of row addresses behind the shuffled columns."""

_BYTES_HELD = 64 << 20
"""A task that holds this many bytes writes them to a file and begins another."""


@dataclass(frozen=True)
class ShuffleTask:
    """A part of one side, whose keys to share among buckets; the side is the target's if `source` is None."""

    target: SnapshotReference
    merge: BoundMerge
    source: SourceRows | None
    part: Part
    folder: str
    num_buckets: int


def shuffle_keys(task: ShuffleTask) -> tuple[SegmentFile, ...]:
    """Write the keys of the task's live rows; each file has one segment for each bucket."""
    target = task.target.open()
    held = KeyBuckets(target.store, task.folder, task.num_buckets)
    keeps_nulls = task.source is None and task.merge.request.deletes_unmatched
    for rows in _scanned(task):
        addresses = rows.addresses(np.arange(len(rows)))
        hashes, has_null = key_hashes(
            [
                values.cast(key.type)
                for key, values in zip(task.merge.keys, key_columns(rows.table, task.merge.keys), strict=True)
            ]
        )
        table = rows.table.append_column(ADDRESS, array_of_numbers(addresses))
        if has_null.any():
            if keeps_nulls:
                hashes[has_null] = key_hashes([array_of_numbers(addresses[has_null])])[0]
            else:
                present = np.flatnonzero(~has_null)
                table, hashes = rows_at(table, present), hashes[present]
        held.add(table, hashes)
    return held.finish()


def _scanned(task: ShuffleTask) -> Iterator[ScannedRows]:
    target = task.target.open()
    if task.source is None:
        return scan_rows(target, task.part.request(target_request(target, task.merge)))
    return task.source.scan(source_columns(task.merge), schema_to_write(target.schema), task.part)


class KeyBuckets:
    """Rows for each bucket, which go to a file when they are many."""

    def __init__(self, store: Store, folder: str, count: int) -> None:
        self._store, self._folder, self._count = store, folder, count
        self._parts: list[list[pa.Table]] = [[] for _ in range(count)]
        self._num_bytes = 0
        self._files: list[SegmentFile] = []

    def add(self, table: pa.Table, hashes: Uint64Array) -> None:
        """Add rows with the hashes of their keys."""
        buckets = _bucket_of(hashes, self._count)
        order, ends = order_by_bucket(buckets, self._count)
        ordered = rows_at(table, order)
        for bucket, (start, stop) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if stop > start:
                self._parts[bucket].append(ordered.slice(start, stop - start))
        self._num_bytes += ordered.nbytes
        if self._num_bytes >= _BYTES_HELD:
            self._write()

    def finish(self) -> tuple[SegmentFile, ...]:
        """Write what is held, and return all files."""
        if self._num_bytes:
            self._write()
        return tuple(self._files)

    def _write(self) -> None:
        segments = [[encode_table(pa.concat_tables(parts))] if parts else [] for parts in self._parts]
        self._files.append(write_segments(self._store, self._folder, segments))
        self._parts = [[] for _ in range(self._count)]
        self._num_bytes = 0


def _bucket_of(hashes: Uint64Array, count: int) -> Int64Array:
    return (((hashes >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)).astype(np.int64)
