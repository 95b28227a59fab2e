"""Run a clustering: sample keys, sort rows into runs, merge ranges of them into fragments, and commit once.

    plan_clustering(snapshot, options) -> ClusterPlan       pure
    Sample, Partition, Merge                                tasks of any runner; see `range_sort`
    cluster_files(snapshot, options, runner)                all of it, on the driver

The driver holds samples, the places of ranges in runs, and for indices of row addresses 8 bytes for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import numbers_of
from lance_ops.core.errors import RetryableConflict
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.maintenance.compaction.clustering.cluster_keys import Curve, Linear, ZOrder, cut_points, keyed
from lance_ops.maintenance.compaction.clustering.cluster_plan import ClusterPlan, plan_clustering
from lance_ops.maintenance.compaction.clustering.range_sort import (
    Merge,
    MergedRange,
    MergeTask,
    Partition,
    Run,
    RunSlice,
    Sample,
    SampledKeys,
    read_addresses,
)
from lance_ops.maintenance.compaction.clustering.reordered_rows import NewOrder, ReorderedRows
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions
from lance_ops.maintenance.compaction.rewriting import CompactionMetrics, MovedRows, commit_moved_rows
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import Fragment
from lance_ops.table.manifest import FileLocations
from lance_ops.table.rows import NewFragment, OldFragment, RewrittenGroup, RowAddressMap, offsets_in
from lance_ops.transactions import PendingFiles, RewriteGroup

__all__ = ["cluster_files"]

_SAMPLES_PER_RANGE = 200
_MIN_SAMPLES = 20_000
_MAX_SAMPLES = 1_000_000


def cluster_files(snapshot: Snapshot, options: CompactionOptions, runner: Runner) -> tuple[Snapshot, CompactionMetrics]:
    """Sort the rows of the planned fragments into new ones, and commit once.

    Rows that another writer deletes or updates meanwhile are a `RetryableConflict`: it is not known where they went.
    Raises as `plan_clustering` does.
    """
    plan = plan_clustering(snapshot, options)
    if not plan.groups:
        return snapshot, CompactionMetrics()
    store, weights = snapshot.store, [piece.size_bytes for piece in plan.pieces]
    curves, cuts = _cut(plan, store, runner)
    partition = Partition(plan.snapshot, plan.columns, plan.file_version, curves, cuts)
    runs = runner.map(
        partition, plan.pieces, plan.job("sort", weights, store), lambda run: _abandon(store, _files([run]))
    )
    try:
        merge = Merge(
            plan.snapshot, plan.columns, plan.file_version, plan.max_bytes_per_file, plan.needs_addresses, curves
        )
        tasks = list(_merge_tasks(plan, runs))
        merged = runner.map(
            merge,
            tasks,
            plan.job("merge", [task.size_bytes for task in tasks], store),
            lambda part: _abandon(store, part.files()),
        )
        try:
            return _commit(snapshot, plan, merged)
        finally:
            _abandon(store, [part.addresses for part in merged if part.addresses is not None])
    finally:
        _abandon(store, _files(runs))


def _cut(plan: ClusterPlan, store: Store, runner: Runner) -> tuple[tuple[Curve, ...], tuple[pa.RecordBatch, ...]]:
    """Choose the curve of each group, and the keys that cut it into ranges, from samples of its rows."""
    one_of = []
    for group in plan.groups:
        wanted = min(max(group.num_ranges * _SAMPLES_PER_RANGE, _MIN_SAMPLES), _MAX_SAMPLES)
        one_of.append(group.num_rows / wanted)
    weights = [piece.size_bytes for piece in plan.pieces]
    sampled = runner.map(
        Sample(plan.snapshot, plan.columns, tuple(one_of)), plan.pieces, plan.job("sample", weights, store)
    )
    curves: list[Curve] = []
    cuts: list[pa.RecordBatch] = []
    for number, group in enumerate(plan.groups):
        values, addresses = _joined([part for part in sampled if part.group == number])
        curve: Curve = ZOrder.of(values) if plan.z_order else Linear()
        curves.append(curve)
        cuts.append(cut_points(keyed(curve.keys(values), addresses), group.num_ranges))
    return tuple(curves), tuple(cuts)


def _joined(samples: Sequence[SampledKeys]) -> tuple[list[pa.Array], pa.Array]:
    columns = zip(*(part.values for part in samples), strict=True)
    return [pa.concat_arrays(column) for column in columns], pa.concat_arrays([part.addresses for part in samples])


def _merge_tasks(plan: ClusterPlan, runs: Sequence[Run]) -> list[MergeTask]:
    """Return a task for each range that has rows, in the order of groups and ranges."""
    tasks = []
    for number, group in enumerate(plan.groups):
        written = [(run, run.fragment) for run in runs if run.group == number and run.fragment is not None]
        num_ranges = len(written[0][0].begins) - 1 if written else 0
        for at in range(num_ranges):
            slices = tuple(
                RunSlice(
                    next(iter(fragment.data_paths())),
                    fragment.files[0].file_size_bytes,
                    int(run.begins[at]),
                    int(run.begins[at + 1]),
                )
                for run, fragment in written
                if run.begins[at] < run.begins[at + 1]
            )
            num_rows = sum(part.stop - part.first for part in slices)
            if slices:
                tasks.append(MergeTask(number, slices, group.size_bytes * num_rows // max(group.num_rows, 1)))
    return tasks


def _commit(snapshot: Snapshot, plan: ClusterPlan, merged: Sequence[MergedRange]) -> tuple[Snapshot, CompactionMetrics]:
    new = [fragment for part in merged for fragment in part.new_fragments]
    pending = PendingFiles.of_fragments(FileLocations(snapshot.store), new, durable=False)
    made = commit_moved_rows(snapshot, pending, len(new), lambda first_id: _moved(snapshot, plan, merged, first_id))
    return made, CompactionMetrics.of([old for group in plan.groups for old in group.fragments], new)


def _moved(snapshot: Snapshot, plan: ClusterPlan, merged: Sequence[MergedRange], first_id: int) -> MovedRows:
    """Number the new fragments, and say where rows went.

    A rewrite's group says by itself that rows kept their order. So each group is written as two, one with the old
    fragments and one with the new ones: other writers then see that they must plan again.
    """
    groups: list[RewriteGroup] = []
    moves = []
    order_files: dict[int, tuple[Fragment, int]] = {}
    for number, group in enumerate(plan.groups):
        numbered: list[Fragment] = []
        for part in (part for part in merged if part.group == number):
            at = 0
            for fragment in part.new_fragments:
                numbered.append(replace(fragment, id=first_id))
                if part.addresses is not None:
                    order_files[first_id] = (part.addresses, at)
                at += fragment.physical_rows
                first_id += 1
        groups += [RewriteGroup(group.fragments, ()), RewriteGroup((), tuple(numbered))]
        moves.append(
            RewrittenGroup(
                tuple(
                    OldFragment(old.id, old.physical_rows, offsets_in(snapshot.deletion_vector(old)))
                    for old in group.fragments
                ),
                tuple(NewFragment(fragment.id, fragment.physical_rows) for fragment in numbered),
            )
        )
    num_rows = {new.fragment_id: new.num_rows for move in moves for new in move.new}

    def read(fragment_id: int) -> Uint64Array:
        if fragment_id not in order_files:
            raise RetryableConflict(f"{snapshot.uri}: another writer built an index on the rows meanwhile")
        file, at = order_files[fragment_id]
        return numbers_of(read_addresses(snapshot.store, file))[at : at + num_rows[fragment_id]].astype(np.uint64)

    order = NewOrder(RowAddressMap(tuple(moves)), read)
    return MovedRows(tuple(groups), ReorderedRows(tuple(moves), None, order))


def _files(runs: Sequence[Run]) -> list[Fragment]:
    return [run.fragment for run in runs if run.fragment is not None]


def _abandon(store: Store, fragments: Sequence[Fragment]) -> None:
    PendingFiles.of_fragments(FileLocations(store), fragments).abandon()
