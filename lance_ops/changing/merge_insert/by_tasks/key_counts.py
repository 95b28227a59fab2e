"""Count the rows that a merge by tasks would match: its first two steps, which then count instead of sharing rows out.

The tasks return numbers and a few addresses. With one bucket, every task that joins has all keys of the source, so
several of them may find the same source row: they write the addresses that they found, and a third step counts each
address once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from lance_ops.changing.merge_insert.by_tasks.key_join import (
    NO_ROW,
    JoinTask,
    open_join,
    pairs_by_part,
    target_rows,
)
from lance_ops.changing.merge_insert.by_tasks.merge_parts import TaskSizes
from lance_ops.changing.merge_insert.by_tasks.merging import MergeWork, plan_distributed_merge
from lance_ops.changing.merge_insert.by_tasks.segment_files import (
    Segment,
    SegmentFile,
    decode_pairs,
    new_folder,
    read_segments,
    segments_of,
    write_segments,
)
from lance_ops.changing.merge_insert.by_tasks.source_rows import SourceRows
from lance_ops.changing.merge_insert.matching import unmatched_to_delete
from lance_ops.changing.merge_insert.merge_request import MergeRequest, WhenMatched, key_columns
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.reading import UserFilter
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot, SnapshotReference

__all__ = ["CountedRows", "MatchCounts", "count_matches"]

DigestRows: TypeAlias = Callable[[Snapshot, Uint64Array], int]
"""Returns the sum of the digests of the rows at these addresses; it is sent to the tasks."""

_JOB_VERB = "count matches ({step}) in"
_NO_ADDRESS: Uint64Array = np.empty(0, np.uint64)


@dataclass(frozen=True, eq=False)
class CountedRows:
    """How many rows of the target were found, and the least of their addresses.

    `sources` has the address of a source row with the key of each row in `first`, or `NO_ROW`.
    """

    count: int
    first: Uint64Array
    sources: Uint64Array

    @classmethod
    def joined(cls, parts: Iterable[CountedRows], num_first: int) -> CountedRows:
        """Return the rows of several parts as one value, with `num_first` addresses."""
        every = [_NO_ROWS, *parts]
        first = np.concatenate([part.first for part in every])
        sources = np.concatenate([part.sources for part in every])
        order = np.argsort(first, kind="stable")[:num_first]
        return cls(sum(part.count for part in every), first[order], sources[order])


_NO_ROWS = CountedRows(0, _NO_ADDRESS, _NO_ADDRESS)


@dataclass(frozen=True, eq=False)
class MatchCounts:
    """Rows of the target that a source row matches, rows that none matches, and how many source rows match one.

    The last number is exact only if it was asked for. `digest` is the sum of the digests of the rows that were found.
    """

    matched: CountedRows
    unmatched: CountedRows
    num_source_rows: int
    digest: int = 0


def count_matches(
    snapshot: Snapshot,
    on: tuple[str, ...],
    source: SourceRows,
    runner: Runner,
    *,
    unmatched: UserFilter | None = None,
    num_first: int = 0,
    counts_source: bool = False,
    use_index: bool = True,
    fragment_ids: Collection[int] | None = None,
    digest: DigestRows | None = None,
    sizes: TaskSizes | None = None,
) -> MatchCounts:
    """Count the rows whose columns `on` have the values of a row of `source`; a null in a key matches nothing.

    `unmatched` also counts the other rows for which it is true. With `counts_source`, the source rows that match are
    counted, each once. With `fragment_ids`, no row of other fragments is looked at. Tasks call `digest` with the
    addresses of the rows that they found. Files between the steps are beneath the table's `data`, and are removed in
    the end. Raises as `plan_distributed_merge` does.
    """
    request = MergeRequest(
        on,
        WhenMatched.DELETE,
        deletes_unmatched=unmatched is not None,
        delete_condition=unmatched,
        use_index=use_index and fragment_ids is None,
        repeated_keys=True,
    )
    plan = replace(plan_distributed_merge(snapshot, request, source, sizes, fragment_ids), job_verb=_JOB_VERB)
    work = MergeWork(plan, runner, new_folder(), SnapshotReference.of(snapshot))
    try:
        tasks, job = work.join_tasks("join", *work.shuffle())
        is_shared = counts_source and plan.num_buckets == 1 and len(tasks) > 1
        counted = runner.map(_CountMatches(num_first, is_shared, digest), tasks, job)
        return MatchCounts(
            CountedRows.joined((each.matched for each in counted), num_first),
            CountedRows.joined((each.unmatched for each in counted), num_first),
            _count_found(work, counted) if is_shared else sum(each.num_source_rows for each in counted),
            sum(each.digest for each in counted),
        )
    finally:
        snapshot.store.child(work.folder).clear_or_leave()


@dataclass(frozen=True, eq=False)
class _Counted:
    """What a task counted; its file has a segment of found source rows for each part of the source."""

    matched: CountedRows
    unmatched: CountedRows
    num_source_rows: int
    file: SegmentFile | None
    digest: int


@dataclass(frozen=True)
class _CountMatches:
    """Counts the matches of a task's keys; with `writes_found`, it writes the addresses of source rows that match."""

    num_first: int
    writes_found: bool
    digest: DigestRows | None

    def __call__(self, task: JoinTask) -> _Counted:
        snapshot, merge, keys, addresses = open_join(task)
        is_found = np.zeros(keys.num_codes, np.bool_)
        matched = unmatched = _NO_ROWS
        digest = 0
        for rows in target_rows(snapshot, task, merge, keys):
            hits, codes = keys.hits(key_columns(rows.table, merge.keys))
            is_found[codes] = True
            here = CountedRows(len(hits), rows.addresses(hits), addresses[keys.last_row_of(codes)])
            matched = CountedRows.joined([matched, here], self.num_first)
            others = unmatched_to_delete(merge, rows, hits)
            here = CountedRows(len(others), others, np.full(len(others), NO_ROW))
            unmatched = CountedRows.joined([unmatched, here], self.num_first)
            if self.digest is not None:
                digest += self.digest(snapshot, np.concatenate((rows.addresses(hits), others)))
        codes = np.flatnonzero(is_found)
        found = addresses[keys.rows_of(codes, codes)[1]]
        file = None
        if self.writes_found and len(found):
            pairs = pairs_by_part(found, np.full(len(found), NO_ROW), task.source_parts)
            file = write_segments(snapshot.store, task.folder, pairs)
        return _Counted(matched, unmatched, len(found), file, digest)


def _count_found(work: MergeWork, counted: Sequence[_Counted]) -> int:
    """Count the source rows that tasks found, each once, by a task for each part of the source."""
    files = [each.file for each in counted if each.file is not None]
    parts = [segments_of(files, number) for number in range(len(work.plan.source_parts))]
    tasks = [segments for segments in parts if segments]
    size_bytes = sum(segment.stop - segment.start for segments in tasks for segment in segments)
    return sum(work.runner.map(_CountDistinct(work.target), tasks, work.plan.job("source", size_bytes)))


@dataclass(frozen=True)
class _CountDistinct:
    """Counts the different left addresses of pairs."""

    target: SnapshotReference

    def __call__(self, segments: tuple[Segment, ...]) -> int:
        found, _ = decode_pairs(read_segments(self.target.open(), segments))
        return len(np.unique(found))
