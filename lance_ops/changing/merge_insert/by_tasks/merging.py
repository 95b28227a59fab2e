"""Merge a source that is too large for one process, by tasks: no row and no key reaches the process that plans.

    plan_distributed_merge(snapshot, request, source) -> DistributedMerge    pure: buckets and parts, by rows and bytes
    prepare_distributed_merge(plan, runner) -> PreparedMerge                 three steps of tasks; commits nothing
    commit_merge(snapshot, prepared) -> Snapshot                             one transaction

The steps are `key_shuffle`, `key_join` and `row_changes`. What a step leaves for the next is in files, and the outcomes
of tasks are names and sizes. So the planning process needs memory for one number for each pair of a task and a bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops.changing.columns import ReplacedValues, fragments_with_replaced_values
from lance_ops.changing.merge_insert.by_tasks.key_join import JoinedKeys, JoinTask, join_keys
from lance_ops.changing.merge_insert.by_tasks.key_shuffle import ShuffleTask, shuffle_keys
from lance_ops.changing.merge_insert.by_tasks.merge_parts import Part, TaskSizes, cut_into_parts, first_addresses
from lance_ops.changing.merge_insert.by_tasks.row_changes import (
    ChangeTask,
    ColumnTask,
    DeletionTask,
    RowTask,
    WrittenChanges,
    write_changes,
)
from lance_ops.changing.merge_insert.by_tasks.segment_files import (
    BYTES_OF_PAIR,
    Segment,
    SegmentFile,
    new_folder,
    segments_of,
)
from lance_ops.changing.merge_insert.by_tasks.source_rows import SourceRows
from lance_ops.changing.merge_insert.inserted_key_filter import encode_inserted_keys
from lance_ops.changing.merge_insert.matching import index_on_key, most_keys_for_index, source_columns, target_columns
from lance_ops.changing.merge_insert.merge import MergeCounts, PreparedMerge, commit_merge
from lance_ops.changing.merge_insert.merge_request import BoundMerge, MergeRequest, bind_merge, write_targets
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_ADDRESS, ROW_COLUMNS
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference, check_rows_are_stored, projected_sizes
from lance_ops.table.rows import join_bitmaps
from lance_ops.transactions import InsertedKeys, PendingFiles, Update, UpdateMode, remove_files_of_job
from lance_ops.writing import choose_file_version

__all__ = [
    "DistributedMerge",
    "MergeWork",
    "distributed_merge",
    "plan_distributed_merge",
    "prepare_distributed_merge",
]

_Segments: TypeAlias = list[tuple[Segment, ...]]


@dataclass(frozen=True)
class DistributedMerge:
    """A merge as of the snapshot's version. The source's rows are in `source`, and none are in `merge`.

    With one bucket, every task that joins reads the keys of all source rows, so the target's are not shuffled.
    """

    snapshot: Snapshot
    merge: BoundMerge
    source: SourceRows
    num_buckets: int
    target_parts: tuple[Part, ...]
    source_parts: tuple[Part, ...]
    uses_index: bool = False
    job_verb: str = "merge ({step}) into"

    def job(self, step: str, size_bytes: int, weights: Iterable[int] = ()) -> Job:
        """What the tasks of a step do together, weighed by rows, and about how many bytes they read."""
        remove = partial(remove_files_of_job, self.snapshot.store)
        uri, version = self.snapshot.uri, self.snapshot.version
        verb = self.job_verb.format(step=step)
        return Job.on(verb, uri, version, tuple(weights), remove, size_bytes, unit="rows")

    @property
    def source_bytes(self) -> int:
        """The bytes of the source's columns."""
        return sum(part.size_bytes for part in self.source_parts)

    @property
    def key_bytes(self) -> int:
        """The bytes of the target's columns that rows are matched by."""
        return sum(part.size_bytes for part in self.target_parts)

    @property
    def changed_bytes(self) -> int:
        """At most this many bytes of the target's rows are read to change them, if rows are of about one size.

        An update in place reads all rows of a fragment. Otherwise each source row changes at most one row.
        """
        of_source, of_target = (sum(part.num_rows for part in side) for side in (self.source_parts, self.target_parts))
        stored = self.snapshot.size_bytes
        return stored if self.merge.request.in_place else stored * min(of_source, of_target) // max(of_target, 1)


def distributed_merge(
    snapshot: Snapshot,
    request: MergeRequest,
    source: SourceRows,
    runner: Runner,
    properties: Mapping[str, str] | None = None,
    sizes: TaskSizes | None = None,
) -> tuple[Snapshot, MergeCounts]:
    """Merge and commit; return the new snapshot, or the same one if no row changes. The errors are `merge_insert`'s."""
    prepared = prepare_distributed_merge(plan_distributed_merge(snapshot, request, source, sizes), runner)
    return commit_merge(snapshot, prepared, properties), prepared.counts


def plan_distributed_merge(
    snapshot: Snapshot,
    request: MergeRequest,
    source: SourceRows,
    sizes: TaskSizes | None = None,
    fragment_ids: Collection[int] | None = None,
) -> DistributedMerge:
    """Check the request against the versions of target and source, and cut both into parts and buckets.

    With `fragment_ids`, only these fragments of the target are among the parts. Raises what `bind_merge` raises, and
    `UnsupportedFeature` for a key of a type without equality.
    """
    sizes = sizes or TaskSizes()
    choose_file_version(snapshot, request.file_version)
    write_targets(snapshot, request)
    merge = bind_merge(snapshot, request, source.no_rows())
    no_keys = SourceKeys(merge.source_keys(), [key.name for key in merge.keys])
    opened = source.version.open()
    for side in (snapshot, opened):
        check_rows_are_stored(side, sum(each.physical_rows for each in side.fragments), side.fragments)
    keys = Schema(tuple(node for node in source.schema.fields if node.name in source_columns(merge)))
    key_bytes = sum(projected_sizes(opened, opened.fragments, keys).values())
    num_rows = sum(fragment.physical_rows for fragment in opened.fragments)
    index = index_on_key(snapshot, merge, no_keys.values)
    of_target = snapshot.schema.project(name for name in target_columns(merge) if name not in ROW_COLUMNS)
    return DistributedMerge(
        snapshot,
        merge,
        source,
        max(1, -(-num_rows // sizes.rows_per_bucket), -(-key_bytes // sizes.bytes_per_bucket)),
        cut_into_parts(snapshot, of_target, sizes, fragment_ids),
        cut_into_parts(opened, source.schema, sizes),
        index is not None and num_rows <= most_keys_for_index(snapshot, index),
    )


def prepare_distributed_merge(plan: DistributedMerge, runner: Runner) -> PreparedMerge:
    """Run the tasks; on an error all files are deleted. The files between the steps are removed in any case."""
    work = MergeWork(plan, runner, new_folder(), SnapshotReference.of(plan.snapshot))
    try:
        joined = work.join(*work.shuffle())
        if plan.merge.request.in_place:
            return work.replace_columns(joined)
        return work.replace_rows(joined)
    finally:
        plan.snapshot.store.child(work.folder).clear_or_leave()


@dataclass(frozen=True)
class MergeWork:
    """The steps of one attempt, with the folder of its files."""

    plan: DistributedMerge
    runner: Runner
    folder: str
    target: SnapshotReference

    def shuffle(self) -> tuple[list[SegmentFile], list[SegmentFile] | None]:
        """Return the files of the source's keys, and of the target's unless there is one bucket."""
        plan = self.plan
        parts: list[tuple[SourceRows | None, Part]] = [(plan.source, part) for part in plan.source_parts]
        if plan.num_buckets > 1:
            parts += [(None, part) for part in plan.target_parts]
        tasks = [
            ShuffleTask(self.target, plan.merge, source, part, self.folder, plan.num_buckets) for source, part in parts
        ]
        size_bytes = sum(part.size_bytes for _, part in parts)
        outcomes = self.runner.map(
            shuffle_keys, tasks, plan.job("keys", size_bytes, (part.num_rows for _, part in parts))
        )
        of_source, of_target = outcomes[: len(plan.source_parts)], outcomes[len(plan.source_parts) :]
        files = [[file for outcome in side for file in outcome] for side in (of_source, of_target)]
        return files[0], files[1] if plan.num_buckets > 1 else None

    def join(self, source: Sequence[SegmentFile], target: Sequence[SegmentFile] | None) -> list[JoinedKeys]:
        """Match the keys of each bucket, or of each part of the target."""
        return self.runner.map(join_keys, *self.join_tasks("join", source, target))

    def join_tasks(
        self, step: str, source: Sequence[SegmentFile], target: Sequence[SegmentFile] | None
    ) -> tuple[list[JoinTask], Job]:
        """Return a task for the keys of each bucket, or of each part of the target, and the job of a step of them."""
        plan, firsts = self.plan, self._firsts()
        size_bytes = plan.source_bytes + (0 if plan.uses_index else plan.key_bytes)
        if target is not None:
            tasks = [
                JoinTask(
                    self.target,
                    plan.merge,
                    segments_of(source, bucket),
                    segments_of(target, bucket),
                    None,
                    self.folder,
                    *firsts,
                )
                for bucket in range(plan.num_buckets)
            ]
            return tasks, plan.job(step, size_bytes)
        keys = segments_of(source, 0)
        parts: Sequence[Part | None] = [None] if plan.uses_index else plan.target_parts
        tasks = [JoinTask(self.target, plan.merge, keys, None, part, self.folder, *firsts) for part in parts]
        weights = () if plan.uses_index else tuple(part.num_rows for part in plan.target_parts)
        return tasks, plan.job(step, size_bytes, weights)

    def replace_rows(self, joined: Sequence[JoinedKeys]) -> PreparedMerge:
        """Write deletion files and new rows."""
        plan, snapshot = self.plan, self.plan.snapshot
        of_target, of_source = self._pairs(joined)
        tasks: list[ChangeTask] = [DeletionTask(self.target, pairs) for pairs in of_target if pairs]
        weights = [sum(pair.stop - pair.start for pair in task.pairs) // BYTES_OF_PAIR for task in tasks]
        for part, pairs in zip(plan.source_parts, of_source, strict=True):
            if pairs or plan.merge.request.inserts:
                tasks.append(RowTask(self.target, plan.merge, plan.source, part, pairs))
                weights.append(part.num_rows)
        written, pending = self._write(tasks, weights)
        with pending.abandoned_on_failure():
            inserted_rows = self._inserted_keys(written)
        operation = Update(
            removed_fragment_ids=tuple(key for each in written for key in each.removed_fragment_ids),
            updated_fragments=tuple(part for each in written for part in each.updated_fragments),
            new_fragments=tuple(part for each in written for part in each.new_fragments),
            fields_for_preserving_frag_bitmap=tuple(node.id for node in snapshot.schema.walk()),
            inserted_rows=inserted_rows,
        )
        return PreparedMerge(operation, _counts(joined, sum(each.num_inserted for each in written)), pending)

    def replace_columns(self, joined: Sequence[JoinedKeys]) -> PreparedMerge:
        """Write files of the source's columns for the fragments that have updated rows."""
        plan, snapshot = self.plan, self.plan.snapshot
        of_target, _ = self._pairs(joined)
        tasks = [ColumnTask(self.target, plan.merge, plan.source, pairs) for pairs in of_target if pairs]
        written, pending = self._write(tasks, ())
        keys = {key.path[0] for key in plan.merge.keys}
        values = plan.merge.source.drop_columns([name for name in plan.merge.source.schema.names if name in keys])
        no_keys = SourceKeys([pa.array([], pa.uint64())], [ROW_ADDRESS])
        files = [file for each in written for file in each.columns]
        with pending.abandoned_on_failure():
            fragments, fields = fragments_with_replaced_values(
                snapshot, ReplacedValues(ROW_ADDRESS, no_keys, values), files
            )
        offsets = join_bitmaps(each.updated_offsets for each in written)
        operation = Update(
            updated_fragments=fragments,
            fields_modified=fields,
            update_mode=UpdateMode.REWRITE_COLUMNS,
            updated_offsets=offsets if snapshot.manifest.uses_stable_row_ids else {},
        )
        return PreparedMerge(operation, _counts(joined, 0), pending)

    def _pairs(self, joined: Sequence[JoinedKeys]) -> tuple[_Segments, _Segments]:
        """Return the pairs of each task that changes fragments of the target, and of each part of the source."""
        files = [each.file for each in joined if each.file is not None]
        of_target, of_source = map(len, self._firsts())
        pairs = [segments_of(files, number) for number in range(of_target + of_source)]
        return pairs[:of_target], pairs[of_target:]

    def _firsts(self) -> tuple[Uint64Array, Uint64Array]:
        """Return the first address of each task that changes the target's fragments, and of each part of the source."""
        of_target = first_addresses(self.plan.target_parts, whole_fragments=True)
        return of_target, first_addresses(self.plan.source_parts)

    def _write(self, tasks: Sequence[ChangeTask], weights: Iterable[int]) -> tuple[list[WrittenChanges], PendingFiles]:
        snapshot, merge = self.plan.snapshot, self.plan.merge
        written = self.runner.map(
            write_changes,
            tasks,
            self.plan.job("rows", self.plan.source_bytes + self.plan.changed_bytes, weights),
            lambda outcome: outcome.pending(snapshot, merge).abandon(),
        )
        return written, sum((outcome.pending(snapshot, merge) for outcome in written), PendingFiles())

    def _inserted_keys(self, written: Sequence[WrittenChanges]) -> bytes | None:
        """Return the filter of all inserted primary keys; None unless the merge records one."""
        none = encode_inserted_keys(self.plan.snapshot, self.plan.merge, np.empty(0, np.int64))
        if none is None:
            return None
        found = (each.inserted_keys for each in written)
        return InsertedKeys.join_encoded([keys for keys in (none, *found) if keys is not None])


def _counts(joined: Sequence[JoinedKeys], num_inserted: int) -> MergeCounts:
    return MergeCounts(num_inserted, sum(each.num_updated for each in joined), sum(each.num_deleted for each in joined))
