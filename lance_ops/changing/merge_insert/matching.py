"""Find which rows of the target the source has rows for, and what becomes of them.

    plan_matching(snapshot, merge) -> tasks     pure: which fragments each task looks at, by an index or by their keys
    find_matches(task) -> Matches               anywhere: addresses of target rows with the source's rows for them

The source's keys are in memory. The target's are streamed, so that memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lance_ops.changing.merge_insert.merge_request import SOURCE, TARGET, BoundMerge, WhenMatched, key_columns
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.arrow import rows_at
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint64Array
from lance_ops.core.predicate import Column, In, Predicate
from lance_ops.reading import (
    ROW_ADDRESS,
    ROW_COLUMNS,
    ROW_ID,
    TASK_READAHEAD,
    VERSION_COLUMNS,
    ScannedRows,
    ScanRequest,
    scan_rows,
    serving_index,
)
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.writing import fragment_ids_per_task

__all__ = [
    "MatchTask",
    "Matches",
    "find_matches",
    "index_on_key",
    "most_keys_for_index",
    "plan_matching",
    "target_columns",
]


_ASKED_OF_AN_INDEX = 16
_INDEX_BELOW = 0.0003
"""Keys for a row of the table up to which an index is asked for them; beyond, reading all keys costs less.

Finding a key in a B-tree takes some 20 µs and reads a page of some thousand others; reading one in a scan takes 10 ns.
"""


@dataclass(frozen=True)
class MatchTask:
    """Fragments to look through; with `by_index` only at the rows that an index, or a scan, finds by that predicate."""

    snapshot: SnapshotReference
    merge: BoundMerge
    keys: SourceKeys
    fragment_ids: tuple[int, ...] | None
    by_index: Predicate | None = None
    index_name: str | None = None


@dataclass(frozen=True)
class Matches:
    """Rows of the target, by address.

    `updated[i]` gets the values of source row `source_rows[i]`; `deleted` were matched, `orphaned` were not, and both
    are to go. `found` are the codes of the source's keys that the target has, some of them twice.
    """

    updated: Uint64Array
    source_rows: Int64Array
    deleted: Uint64Array
    orphaned: Uint64Array
    found: Int64Array

    @classmethod
    def joined(cls, parts: Sequence[Matches]) -> Matches:
        """Return the matches of several parts of the target as one."""
        every = [NO_MATCHES, *parts]
        return cls(
            np.concatenate([part.updated for part in every]),
            np.concatenate([part.source_rows for part in every]),
            np.concatenate([part.deleted for part in every]),
            np.concatenate([part.orphaned for part in every]),
            np.concatenate([part.found for part in every]),
        )


_NO_ADDRESS: Uint64Array = np.empty(0, np.uint64)
_NO_ROW: Int64Array = np.empty(0, np.int64)
NO_MATCHES = Matches(_NO_ADDRESS, _NO_ROW, _NO_ADDRESS, _NO_ADDRESS, _NO_ROW)


def plan_matching(snapshot: Snapshot, merge: BoundMerge) -> tuple[MatchTask, ...]:
    """Choose between an index on the key, for few keys, and reading every row's key."""
    reference = SnapshotReference.of(snapshot)
    keys = SourceKeys(merge.source_keys(), [key.name for key in merge.keys])
    merge = replace(merge, source=merge.source.select(_source_columns(merge)))  # a task may travel
    if 0 < keys.num_codes <= most_keys_for_index(snapshot):
        index = index_on_key(snapshot, merge, keys.values)
        if index is not None:
            return (MatchTask(reference, merge, keys, None, In(merge.keys[0], keys.values), index),)
    return tuple(MatchTask(reference, merge, keys, ids) for ids in fragment_ids_per_task(snapshot))


def most_keys_for_index(snapshot: Snapshot) -> int:
    """Return up to how many distinct keys of the source an index is asked for."""
    return max(_ASKED_OF_AN_INDEX, int(_INDEX_BELOW * snapshot.num_rows))


def index_on_key(snapshot: Snapshot, merge: BoundMerge, keys: pa.Array) -> str | None:
    """Return the name of the index that can be asked for keys; None where there is none or every row is looked at."""
    if not merge.request.use_index or merge.request.deletes_unmatched or len(merge.keys) != 1:
        return None
    return serving_index(snapshot, In(merge.keys[0], keys))


def find_matches(task: MatchTask) -> Matches:
    """Match the task's live rows; raise `InvalidInput` where two source rows are for one of them.

    Raises it for any match of a merge that allows none.
    """
    snapshot = task.snapshot.open()
    names = target_columns(task.merge)
    request = ScanRequest(
        snapshot.schema.project(name for name in names if name not in ROW_COLUMNS),
        task.by_index,
        with_row_id=ROW_ID in names,
        with_row_address=ROW_ADDRESS in names,
        version_columns=tuple(name for name in names if name in VERSION_COLUMNS),
        fragment_ids=task.fragment_ids,
        readahead=TASK_READAHEAD,
    )
    known = np.zeros(task.keys.num_codes, np.bool_)
    matches = Matches.joined([_match(task, rows, known) for rows in scan_rows(snapshot, request)])
    return replace(matches, found=np.flatnonzero(known))


def target_columns(merge: BoundMerge) -> list[str]:
    """Return the target's columns to read: keys, and what the conditions ask for."""
    names = [key.name for key in merge.keys]
    if merge.update_condition is not None:
        nodes = (node for node in merge.update_condition.walk() if isinstance(node, Column) and node.path[0] == TARGET)
        names += [replace(node, path=node.path[1:]).name for node in nodes]
    if merge.delete_condition is not None:
        names += merge.delete_condition.columns()
    return list(dict.fromkeys(names))


def _source_columns(merge: BoundMerge) -> list[str]:
    """Return the source's columns that matching looks at."""
    nodes = merge.update_condition.walk() if merge.update_condition is not None else ()
    asked = (node.path[1] for node in nodes if isinstance(node, Column) and node.path[0] == SOURCE)
    return list(dict.fromkeys([*(key.path[0] for key in merge.keys), *asked]))


def _match(task: MatchTask, rows: ScannedRows, known: BoolArray) -> Matches:
    """Match one block's rows, and mark in `known` the codes of the keys that are there."""
    merge = task.merge
    hits, codes = task.keys.hits(key_columns(rows.table, merge.keys))
    known[codes] = True
    orphaned = _orphaned(merge, rows, hits)
    if merge.request.when_matched is WhenMatched.KEEP or not len(hits):
        return Matches(_NO_ADDRESS, _NO_ROW, _NO_ADDRESS, orphaned, _NO_ROW)
    places, source_rows = task.keys.rows_of(hits, codes)
    if merge.request.when_matched is WhenMatched.FAIL:
        raise InvalidInput(f"the merge found a matching row, and allows none: {_spelled(merge, source_rows[0])}")
    if merge.update_condition is not None:
        holds = _holds(merge, merge.update_condition, rows.table, places, source_rows)
        places, source_rows = places[holds], source_rows[holds]
    if not task.keys.are_distinct:
        _check_unambiguous(merge, places, source_rows)
    if merge.request.when_matched is WhenMatched.DELETE:
        return Matches(_NO_ADDRESS, _NO_ROW, rows.addresses(places), orphaned, _NO_ROW)
    return Matches(rows.addresses(places), source_rows, _NO_ADDRESS, orphaned, _NO_ROW)


def _check_unambiguous(merge: BoundMerge, places: Int64Array, source_rows: Int64Array) -> None:
    """Raise `InvalidInput` if a place, of ascending ones, is there twice."""
    twice = np.flatnonzero(places[1:] == places[:-1])
    if len(twice):
        raise InvalidInput(
            "ambiguous merge: several source rows match the same target row, "
            f"{_spelled(merge, source_rows[twice[0]])}; leave one source row for each key"
        )


def _orphaned(merge: BoundMerge, rows: ScannedRows, hits: Int64Array) -> Uint64Array:
    if not merge.request.deletes_unmatched:
        return NO_MATCHES.orphaned
    doomed = np.ones(len(rows), np.bool_)
    doomed[hits] = False
    if merge.delete_condition is not None:
        doomed &= merge.delete_condition.true_mask(rows.table)
    return rows.addresses(np.flatnonzero(doomed))


def _holds(
    merge: BoundMerge, condition: Predicate, rows: pa.Table, places: Int64Array, source_rows: Int64Array
) -> BoolArray:
    """Return for which pairs of rows the condition is true."""
    sides = {
        SOURCE: _struct(rows_at(merge.source, source_rows)),
        TARGET: _struct(rows_at(rows, places)),
    }
    return condition.true_mask(pa.record_batch(list(sides.values()), names=list(sides)))


def _struct(rows: pa.Table) -> pa.StructArray:
    return pa.StructArray.from_arrays([column.combine_chunks() for column in rows.columns], fields=list(rows.schema))


def _spelled(merge: BoundMerge, source_row: int) -> str:
    batch = merge.source.slice(source_row, 1).combine_chunks().to_batches()[0]
    return ", ".join(f"{key.name} = {key.evaluate(batch)[0].as_py()!r}" for key in merge.keys)
