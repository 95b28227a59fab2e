"""Match the rows of the table (the target) with the rows of a merge's source by key.

    plan_matching(snapshot, merge) -> tasks     pure: the fragments of each task, and whether an index finds the rows
    find_matches(task) -> Matches               anywhere: addresses of target rows, with their source rows

The source's keys are in memory. The target's keys are streamed, so that memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from lance_ops.changing.merge_insert.merge_request import SOURCE, TARGET, BoundMerge, WhenMatched, key_columns
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.arrow import rows_at
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint64Array
from lance_ops.core.predicate import Column, In, Predicate
from lance_ops.core.records import dataclass
from lance_ops.indices import index_type_of
from lance_ops.reading import (
    ROW_ADDRESS,
    ROW_COLUMNS,
    ROW_ID,
    VERSION_COLUMNS,
    ScanRequest,
    in_task,
    scan_rows,
    serving_index,
)
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.writing import TaskShare, share_rows

__all__ = [
    "KeyedRows",
    "MatchTask",
    "Matches",
    "find_matches",
    "index_on_key",
    "match_rows",
    "most_keys_for_index",
    "plan_matching",
    "source_columns",
    "target_columns",
    "target_request",
    "unmatched_to_delete",
]


_MIN_KEYS_FOR_INDEX = 16
_MAX_KEYS_PER_ROW = 0.0003
"""Source keys per row of the table up to which an index is used; with more keys, a scan of all keys costs less.

A B-tree lookup takes about 20 µs and reads a page of some thousand keys; a scan takes about 10 ns for each key.
"""

_SHORT_INDEX_ROWS = 16_384
_FILES_OF_A_SEGMENT = 2
"""Where reads are requests, an index on at most this many rows serves for as many keys if it takes fewer requests than
a scan: one for each file of its segments, and one for each fragment that it does not cover.
"""


@dataclass(frozen=True)
class MatchTask:
    """Rows to match: a share, or with `by_index` the rows that match this predicate, found by an index or a scan."""

    snapshot: SnapshotReference
    merge: BoundMerge
    keys: SourceKeys
    share: TaskShare | None
    by_index: Predicate | None = None
    index_name: str | None = None


class KeyedRows(Protocol):
    """Rows of the target with the columns that matching reads."""

    @property
    def table(self) -> pa.Table:
        """The columns of `target_columns`."""
        ...

    def __len__(self) -> int: ...

    def addresses(self, positions: Int64Array) -> Uint64Array:
        """Return the addresses of the rows at these positions in the table."""
        ...


@dataclass(frozen=True)
class Matches:
    """Rows of the target, by address.

    `updated[i]` gets the values of source row `source_rows[i]`. `deleted` are matched rows to delete, and
    `deleted_unmatched` are rows to delete that match no source row. `found_codes` are the codes of the source's keys
    that the target has; a code may be there several times.
    """

    updated: Uint64Array
    source_rows: Int64Array
    deleted: Uint64Array
    deleted_unmatched: Uint64Array
    found_codes: Int64Array

    @classmethod
    def joined(cls, parts: Sequence[Matches]) -> Matches:
        """Return the matches of several parts of the target as one value."""
        every = [_NO_MATCHES, *parts]
        return cls(
            np.concatenate([part.updated for part in every]),
            np.concatenate([part.source_rows for part in every]),
            np.concatenate([part.deleted for part in every]),
            np.concatenate([part.deleted_unmatched for part in every]),
            np.concatenate([part.found_codes for part in every]),
        )


_NO_ADDRESS: Uint64Array = np.empty(0, np.uint64)
_NO_ROW: Int64Array = np.empty(0, np.int64)
_NO_MATCHES = Matches(_NO_ADDRESS, _NO_ROW, _NO_ADDRESS, _NO_ADDRESS, _NO_ROW)


def plan_matching(snapshot: Snapshot, merge: BoundMerge) -> tuple[MatchTask, ...]:
    """Choose between an index on the key, for few keys, and a scan of every row's key."""
    reference = SnapshotReference.of(snapshot)
    keys = SourceKeys(merge.source_keys(), [key.name for key in merge.keys])
    merge = replace(merge, source=merge.source.select(source_columns(merge)))  # a task may be sent to another process
    if 0 < keys.num_codes <= max(_SHORT_INDEX_ROWS, _most_keys_by_rows(snapshot)):
        index = index_on_key(snapshot, merge, keys.values)
        if index is not None and keys.num_codes <= most_keys_for_index(snapshot, index):
            return (MatchTask(reference, merge, keys, None, In(merge.keys[0], keys.values), index),)
    shares = share_rows(snapshot, None, message_bytes=2 * merge.source.nbytes)  # the source, and its keys once more
    return tuple(MatchTask(reference, merge, keys, share) for share in shares)


def most_keys_for_index(snapshot: Snapshot, index_name: str) -> int:
    """Return the largest number of distinct source keys for which this index is used."""
    takes_few_requests = not snapshot.store.reads_in_place and _is_short(snapshot, index_name)
    return _SHORT_INDEX_ROWS if takes_few_requests else _most_keys_by_rows(snapshot)


def _most_keys_by_rows(snapshot: Snapshot) -> int:
    return max(_MIN_KEYS_FOR_INDEX, int(_MAX_KEYS_PER_ROW * snapshot.num_rows))


def _is_short(snapshot: Snapshot, index_name: str) -> bool:
    """Return whether to read the whole index takes fewer requests than a scan; it also has entries of deleted rows."""
    segments = [index for index in snapshot.manifest.indices if index.name == index_name]
    covered = {number for segment in segments for number in segment.covers(snapshot.fragments_by_id)}
    num_requests = _FILES_OF_A_SEGMENT * len(segments) + len(snapshot.fragments) - len(covered)
    return (
        num_requests < len(snapshot.fragments)
        and snapshot.manifest.fragments.totals().physical_rows <= _SHORT_INDEX_ROWS
        and index_type_of(segments[0]).names_rows
    )


def index_on_key(snapshot: Snapshot, merge: BoundMerge, keys: pa.Array) -> str | None:
    """Return the name of the index that finds these keys; None if there is none, or if the merge needs every row."""
    if not merge.request.use_index or merge.request.deletes_unmatched or len(merge.keys) != 1:
        return None
    return serving_index(snapshot, In(merge.keys[0], keys))


def find_matches(task: MatchTask) -> Matches:
    """Match the task's live rows.

    Raises `InvalidInput` if two source rows match one of them, and for any match if the merge allows none.
    """
    snapshot, keys = task.snapshot.open(), task.keys
    request = target_request(snapshot, task.merge, task.by_index)
    if task.share is not None:
        request = replace(request, fragment_ids=task.share.fragment_ids, row_ranges=task.share.row_ranges)
    is_found = np.zeros(keys.num_codes, np.bool_)
    matches = Matches.joined([match_rows(task.merge, keys, rows, is_found) for rows in scan_rows(snapshot, request)])
    return replace(matches, found_codes=np.flatnonzero(is_found))


def target_request(snapshot: Snapshot, merge: BoundMerge, by_index: Predicate | None = None) -> ScanRequest:
    """Return the scan, inside a task, of what matching reads of the target."""
    names = target_columns(merge)
    request = ScanRequest(
        snapshot.schema.project(name for name in names if name not in ROW_COLUMNS),
        by_index,
        with_row_id=ROW_ID in names,
        with_row_address=ROW_ADDRESS in names,
        version_columns=tuple(name for name in names if name in VERSION_COLUMNS),
    )
    return in_task(snapshot, request)


def target_columns(merge: BoundMerge) -> list[str]:
    """Return the target's columns to read: the keys, and the columns of the conditions."""
    names = [key.name for key in merge.keys]
    if merge.update_condition is not None:
        nodes = (node for node in merge.update_condition.walk() if isinstance(node, Column) and node.path[0] == TARGET)
        names += [replace(node, path=node.path[1:]).name for node in nodes]
    if merge.delete_condition is not None:
        names += merge.delete_condition.columns()
    return list(dict.fromkeys(names))


def source_columns(merge: BoundMerge) -> list[str]:
    """Return the source's columns that matching reads."""
    nodes = merge.update_condition.walk() if merge.update_condition is not None else ()
    used = (node.path[1] for node in nodes if isinstance(node, Column) and node.path[0] == SOURCE)
    return list(dict.fromkeys([*(key.path[0] for key in merge.keys), *used]))


def match_rows(merge: BoundMerge, keys: SourceKeys, rows: KeyedRows, is_found: BoolArray) -> Matches:
    """Match rows of the target with `merge.source`, whose keys are `keys`; mark the codes of their keys in `is_found`.

    Raises as `find_matches` does.
    """
    request = merge.request
    hits, codes = keys.hits(key_columns(rows.table, merge.keys))
    is_found[codes] = True
    unmatched = unmatched_to_delete(merge, rows, hits)
    if request.when_matched is WhenMatched.KEEP or not len(hits):
        return Matches(_NO_ADDRESS, _NO_ROW, _NO_ADDRESS, unmatched, _NO_ROW)
    if request.repeated_keys:
        return Matches(_NO_ADDRESS, _NO_ROW, rows.addresses(hits), unmatched, _NO_ROW)
    positions, source_rows = keys.rows_of(hits, codes)
    if request.when_matched is WhenMatched.FAIL:
        raise InvalidInput(f"the merge found a matching row, and allows none: {_key_text(merge, source_rows[0])}")
    if merge.update_condition is not None:
        holds = _holds(merge, merge.update_condition, rows.table, positions, source_rows)
        positions, source_rows = positions[holds], source_rows[holds]
    if not keys.are_distinct:
        _check_unambiguous(merge, positions, source_rows)
    if request.when_matched is WhenMatched.DELETE:
        return Matches(_NO_ADDRESS, _NO_ROW, rows.addresses(positions), unmatched, _NO_ROW)
    return Matches(rows.addresses(positions), source_rows, _NO_ADDRESS, unmatched, _NO_ROW)


def _check_unambiguous(merge: BoundMerge, positions: Int64Array, source_rows: Int64Array) -> None:
    """Raise `InvalidInput` if one of the ascending `positions` occurs twice."""
    twice = np.flatnonzero(positions[1:] == positions[:-1])
    if len(twice):
        raise InvalidInput(
            "ambiguous merge: several source rows match the same target row, "
            f"{_key_text(merge, source_rows[twice[0]])}; leave one source row for each key"
        )


def unmatched_to_delete(merge: BoundMerge, rows: KeyedRows, hits: Int64Array) -> Uint64Array:
    """Return the addresses of the rows besides `hits` that the merge deletes because no source row matches them."""
    if not merge.request.deletes_unmatched:
        return _NO_ADDRESS
    to_delete = np.ones(len(rows), np.bool_)
    to_delete[hits] = False
    if merge.delete_condition is not None:
        to_delete &= merge.delete_condition.true_mask(rows.table)
    return rows.addresses(np.flatnonzero(to_delete))


def _holds(
    merge: BoundMerge, condition: Predicate, rows: pa.Table, positions: Int64Array, source_rows: Int64Array
) -> BoolArray:
    """Return for which pairs of target and source rows the condition is true."""
    sides = {
        SOURCE: _struct(rows_at(merge.source, source_rows)),
        TARGET: _struct(rows_at(rows, positions)),
    }
    return condition.true_mask(pa.record_batch(list(sides.values()), names=list(sides)))


def _struct(rows: pa.Table) -> pa.StructArray:
    return pa.StructArray.from_arrays([column.combine_chunks() for column in rows.columns], fields=list(rows.schema))


def _key_text(merge: BoundMerge, source_row: int) -> str:
    batch = merge.source.slice(source_row, 1).combine_chunks().to_batches()[0]
    return ", ".join(f"{key.name} = {key.evaluate(batch)[0].as_py()!r}" for key in merge.keys)
