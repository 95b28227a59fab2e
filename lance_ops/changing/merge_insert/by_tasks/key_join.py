"""Step 2 of a merge by tasks: match the keys of one bucket, and share the matches among the tasks that write.

The source's keys of a bucket are in memory, and the target's are streamed past them. With one bucket, the target's keys
were not shuffled: each task reads them from its part of the target, or by an index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lance_ops.changing.merge_insert.by_tasks.bucket_order import order_by_bucket
from lance_ops.changing.merge_insert.by_tasks.key_shuffle import ADDRESS
from lance_ops.changing.merge_insert.by_tasks.merge_parts import Part
from lance_ops.changing.merge_insert.by_tasks.segment_files import (
    Segment,
    SegmentFile,
    decode_table,
    encode_pairs,
    read_segments,
    write_segments,
)
from lance_ops.changing.merge_insert.matching import (
    KeyedRows,
    Matches,
    index_on_key,
    match_rows,
    source_columns,
    target_request,
)
from lance_ops.changing.merge_insert.merge_request import BoundMerge, WhenMatched
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.addresses import TOMBSTONE_ROW
from lance_ops.core.arrow import numbers_of
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.predicate import In
from lance_ops.core.records import dataclass
from lance_ops.reading import scan_rows
from lance_ops.snapshot import Snapshot, SnapshotReference

__all__ = ["NO_ROW", "JoinTask", "JoinedKeys", "join_keys", "open_join", "pairs_by_part", "target_rows"]

NO_ROW = np.uint64(TOMBSTONE_ROW)
"""Stands for the address of a row that there is not."""


@dataclass(frozen=True, eq=False)
class JoinTask:
    """Keys to match: a bucket of both sides, or all of the source's and those of a part of the target.

    `target_parts` and `source_parts` have the first row address of each task that writes, ascending.
    """

    target: SnapshotReference
    merge: BoundMerge
    source_keys: tuple[Segment, ...]
    target_keys: tuple[Segment, ...] | None
    part: Part | None
    folder: str
    target_parts: Uint64Array
    source_parts: Uint64Array


@dataclass(frozen=True, eq=False)
class JoinedKeys:
    """What a task found. Its file has a segment of pairs for each part of the target, then for each of the source.

    A pair of a target's part is a row that goes and the source row that replaces it, or `NO_ROW`. A pair of a source's
    part is a row whose key the target has and the target row that gets its values, or `NO_ROW`.
    """

    file: SegmentFile | None
    num_updated: int
    num_deleted: int


def join_keys(task: JoinTask) -> JoinedKeys:
    """Match the task's keys; raise `InvalidInput` as `find_matches` does."""
    snapshot, merge, keys, addresses = open_join(task)
    is_found = np.zeros(keys.num_codes, np.bool_)
    matches = Matches.joined(
        [match_rows(merge, keys, rows, is_found) for rows in target_rows(snapshot, task, merge, keys)]
    )
    found = np.flatnonzero(is_found)
    used = keys.rows_of(found, found)[1] if merge.request.inserts else matches.source_rows[:0]
    return _write(snapshot, task, matches, addresses, used)


def open_join(task: JoinTask) -> tuple[Snapshot, BoundMerge, SourceKeys, Uint64Array]:
    """Return the target, the merge with the task's source rows, their keys, and their addresses."""
    snapshot = task.target.open()
    source, addresses = _source_keys(snapshot, task)
    merge = replace(task.merge, source=source)
    return snapshot, merge, SourceKeys(merge.source_keys(), [key.name for key in merge.keys]), addresses


@dataclass(frozen=True, eq=False)
class _ShuffledRows:
    """Rows of the target from a segment."""

    table: pa.Table
    row_addresses: Uint64Array

    def __len__(self) -> int:
        return len(self.row_addresses)

    def addresses(self, positions: Int64Array) -> Uint64Array:
        return self.row_addresses[positions]


def _source_keys(snapshot: Snapshot, task: JoinTask) -> tuple[pa.Table, Uint64Array]:
    """Return the source's rows of the bucket, and their addresses."""
    tables = [decode_table(data) for data in read_segments(snapshot, task.source_keys)]
    if not tables:
        return task.merge.source.select(source_columns(task.merge)), np.empty(0, np.uint64)
    table = pa.concat_tables(tables)
    return table.drop_columns([ADDRESS]).combine_chunks(), numbers_of(table.column(ADDRESS))


def target_rows(snapshot: Snapshot, task: JoinTask, merge: BoundMerge, keys: SourceKeys) -> Iterator[KeyedRows]:
    """Yield the rows of the target that the task matches with the source's keys."""
    if task.target_keys is not None:
        for data in read_segments(snapshot, task.target_keys):
            table = decode_table(data)
            yield _ShuffledRows(table.drop_columns([ADDRESS]), numbers_of(table.column(ADDRESS)))
        return
    by_index = None
    if task.part is None and index_on_key(snapshot, merge, keys.values) is not None:
        by_index = In(merge.keys[0], keys.values)
    request = target_request(snapshot, merge, by_index)
    yield from scan_rows(snapshot, request if task.part is None else task.part.request(request))


def _write(
    snapshot: Snapshot, task: JoinTask, matches: Matches, addresses: Uint64Array, used: Int64Array
) -> JoinedKeys:
    """Write the pairs of each part; `used` are the source rows whose key the target has, if the merge inserts others.

    A source row that several target rows match is in several pairs.
    """
    request = task.merge.request
    new = addresses[matches.source_rows]
    deleted = np.concatenate((matches.deleted, matches.deleted_unmatched))
    outcome = (len(matches.updated), len(deleted))
    gone = np.concatenate((matches.updated, deleted)), np.concatenate((new, np.full(len(deleted), NO_ROW)))
    segments = pairs_by_part(*gone, task.target_parts)
    chosen: tuple[Uint64Array, Uint64Array] = new[:0], new[:0]
    if not request.in_place:
        moved = (new, matches.updated) if request.when_matched is WhenMatched.UPDATE else chosen
        is_other = np.zeros(len(addresses), np.bool_)
        is_other[used] = True
        is_other[matches.source_rows] = False
        others = addresses[is_other]
        chosen = np.concatenate((moved[0], others)), np.concatenate((moved[1], np.full(len(others), NO_ROW)))
    segments += pairs_by_part(*chosen, task.source_parts)
    if not any(segments):
        return JoinedKeys(None, *outcome)
    return JoinedKeys(write_segments(snapshot.store, task.folder, segments), *outcome)


def pairs_by_part(left: Uint64Array, right: Uint64Array, parts: Uint64Array) -> list[list[pa.Buffer]]:
    """Return the pairs of each part, by the left address; `parts` has the first address of each."""
    of_part = np.searchsorted(parts, left, side="right") - 1
    order, ends = order_by_bucket(of_part, len(parts))
    left, right = left[order], right[order]
    return [encode_pairs(left[start:stop], right[start:stop]) for start, stop in pairwise([0, *ends.tolist()])]
