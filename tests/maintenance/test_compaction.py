import os
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import FrozenBitMap

import lance_ops
from lance_ops.changing.deletion import commit_deletion, find_rows, plan_deletion
from lance_ops.errors import (
    IncompatibleTransaction,
    InvalidInput,
    RetryableConflict,
    TooManyConcurrentWriters,
    UnsupportedFeature,
)
from lance_ops.maintenance.compaction import compact_files, rewriting
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, RewriteTask, plan_compaction
from lance_ops.maintenance.compaction.rewriting import RewriteOutcome, commit_rewrites, discard_rewrite, execute_rewrite
from lance_ops.reading.filters import bind_filter
from lance_ops.runners import InThreads
from lance_ops.snapshot import Snapshot
from lance_ops.table import IndexMetadata
from lance_ops.transactions import CreateIndex, Operation, Rewrite
from lance_ops.writing.commit import commit_operation

Make = Callable[..., lance_ops.LanceDataset]


def test_small_fragments_become_one_and_rows_stay_in_order(make: Make) -> None:
    dataset = make()
    before = dataset.to_table()
    metrics = dataset.optimize.compact_files()
    assert (metrics.fragments_removed, metrics.fragments_added) == (5, 1)
    assert (metrics.files_removed, metrics.files_added) == (5, 1)
    assert dataset.to_table() == before
    assert len(dataset.get_fragments()) == 1
    transaction = dataset.read_transaction(dataset.version)
    assert transaction is not None and transaction.operation.name == "Rewrite"


@pytest.mark.parametrize("gathered_bytes", [1, 900, 1 << 20])
def test_compacted_rows_do_not_depend_on_the_batch_size(
    make: Make, gathered_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "_GATHERED_BYTES", gathered_bytes)
    dataset = make()
    dataset.delete("id % 7 = 0")
    before = dataset.to_table()
    dataset.optimize.compact_files(target_rows_per_fragment=60)
    assert dataset.to_table() == before
    assert sum(fragment.physical_rows for fragment in dataset.get_fragments()) == len(before)


def test_dictionaries_too_large_to_join_are_written_separately(dataset_uri: str) -> None:
    parts = [[f"{number}: {i}" for i in range(100)] for number in range(3)]
    for part in parts:
        column = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), pa.array(part))
        dataset = lance_ops.write_dataset(pa.table({"d": column}), dataset_uri, mode="append")
    dataset.optimize.compact_files()
    assert len(dataset.get_fragments()) == 1
    assert dataset.to_table()["d"].to_pylist() == [value for part in parts for value in part]


def test_a_second_compaction_finds_nothing_to_do(make: Make) -> None:
    dataset = make()
    dataset.optimize.compact_files()
    version = dataset.version
    assert dataset.optimize.compact_files().fragments_removed == 0
    assert dataset.version == version


def test_compaction_drops_deleted_rows(make: Make) -> None:
    dataset = make(num_fragments=2)
    dataset.delete("id % 4 = 0")
    before = dataset.to_table()
    dataset.optimize.compact_files()
    assert dataset.to_table() == before
    fragment = dataset.get_fragments()[0]
    assert (fragment.physical_rows, fragment.num_deletions) == (30, 0)


def test_a_large_fragment_is_rewritten_only_for_its_deletions(make: Make) -> None:
    dataset = make(num_fragments=1, num_rows=100)
    dataset.delete("id < 5")
    assert dataset.optimize.compact_files(target_rows_per_fragment=50).fragments_removed == 0
    dataset.delete("id < 20")
    assert (
        dataset.optimize.compact_files(target_rows_per_fragment=50, materialize_deletions=False).fragments_removed == 0
    )
    assert dataset.optimize.compact_files(target_rows_per_fragment=50).fragments_removed == 1
    assert dataset.count_rows() == 80


def test_groups_end_at_the_target_size_and_at_index_coverage(make: Make) -> None:
    dataset = make(num_fragments=4)
    dataset.create_scalar_index("key", "BTREE")
    lance_ops.write_dataset(dataset.to_table(limit=20), dataset.uri, mode="append")
    lance_ops.write_dataset(dataset.to_table(limit=20), dataset.uri, mode="append")
    snapshot = lance_ops.dataset(dataset.uri).snapshot
    groups = [task.fragment_ids for task in plan_compaction(snapshot, CompactionOptions()).tasks]
    assert groups == [(0, 1, 2, 3), (4, 5)]
    groups = [task.fragment_ids for task in plan_compaction(snapshot, CompactionOptions(40)).tasks]
    assert groups == [(0, 1), (2, 3), (4, 5)]
    limited = plan_compaction(snapshot, CompactionOptions(40, max_source_fragments=4))
    assert [task.fragment_ids for task in limited.tasks] == [(0, 1), (2, 3)]
    excluded = plan_compaction(snapshot, CompactionOptions(excluded_fragment_ids=(1,)))
    assert [task.fragment_ids for task in excluded.tasks] == [(2, 3), (4, 5)]


def test_fragments_that_a_rewrite_would_not_reduce_are_kept(make: Make) -> None:
    dataset = make(num_fragments=2, num_rows=60)
    assert dataset.optimize.compact_files(target_rows_per_fragment=100).fragments_removed == 0
    lance_ops.write_dataset(dataset.to_table(limit=60), dataset, mode="append")
    dataset.checkout_latest()
    metrics = dataset.optimize.compact_files(target_rows_per_fragment=100)
    assert (metrics.fragments_removed, metrics.fragments_added) == (3, 2)
    assert dataset.optimize.compact_files(target_rows_per_fragment=100).fragments_removed == 0


def test_plans_tasks_and_outcomes_pickle_small(make: Make) -> None:
    snapshot = make().snapshot
    plan = pickle.loads(pickle.dumps(plan_compaction(snapshot, CompactionOptions())))
    outcomes = pickle.loads(pickle.dumps([execute_rewrite(task) for task in plan.tasks]))
    committed, metrics = commit_rewrites(snapshot, outcomes)
    assert metrics.fragments_added == 1
    assert len(pickle.dumps(plan)) < 4096 and len(pickle.dumps(outcomes)) < 16_384
    assert committed.num_rows == 100


def test_a_remapped_index_finds_moved_rows_and_no_deleted_row(make: Make) -> None:
    dataset = make()
    dataset.create_scalar_index("key", "BTREE")
    dataset.delete("id % 3 = 0")
    dataset.optimize.compact_files()
    assert "ScalarIndexQuery" in dataset.scanner(filter="key < 300").explain_plan()
    for predicate in ("key < 300", "key = 919", "key IS NULL", "key >= 990"):
        by_index = dataset.to_table(filter=predicate)
        by_scan = dataset.to_table(filter=predicate, use_scalar_index=False)
        assert by_index == by_scan
        assert all(i % 3 for i in by_index.column("id").to_pylist())
    assert dataset.index_statistics("key_idx")["num_unindexed_rows"] == 0


def test_rows_deleted_between_plan_and_commit_stay_deleted(make: Make) -> None:
    dataset = make()
    dataset.create_scalar_index("key", "BTREE")
    snapshot = dataset.snapshot
    rewrites = [execute_rewrite(task) for task in plan_compaction(snapshot, CompactionOptions()).tasks]
    dataset.delete("id in (42, 77)")
    committed, _ = commit_rewrites(snapshot, rewrites)
    again = lance_ops.dataset(dataset.uri)
    assert again.version == committed.version
    assert again.to_table().column("id").to_pylist() == [i for i in range(100) if i not in (42, 77)]
    assert "ScalarIndexQuery" in again.scanner(filter="key < 800").explain_plan()
    assert again.to_table(filter="key < 800") == again.to_table(filter="key < 800", use_scalar_index=False)


def test_a_delete_planned_before_a_compaction_is_committed_after_it(make: Make) -> None:
    dataset = make()
    dataset.create_scalar_index("key", "BTREE")
    plan = plan_deletion(dataset.snapshot, bind_filter(dataset.snapshot, "id % 10 = 3"))
    dataset.optimize.compact_files()
    committed, num_deleted = commit_deletion(plan, [find_rows(task) for task in plan.tasks])
    assert num_deleted == 10
    assert committed.num_rows == 90
    again = lance_ops.dataset(dataset.uri)
    assert again.to_table().column("id").to_pylist() == [i for i in range(100) if i % 10 != 3]
    assert again.to_table(filter="key < 500") == again.to_table(filter="key < 500", use_scalar_index=False)


def test_compactions_of_different_fragments_both_commit_and_remap_the_index(make: Make) -> None:
    dataset = make(num_fragments=6)
    dataset.create_scalar_index("key", "BTREE")
    snapshot = dataset.snapshot
    plan = plan_compaction(snapshot, CompactionOptions(40))
    first, *others = (execute_rewrite(task) for task in plan.tasks)
    commit_rewrites(snapshot, [first])
    commit_rewrites(snapshot, others)
    assert_indexed(dataset.uri, num_rows=120, num_fragments=3)


@pytest.mark.parametrize("change", ["create", "replace", "optimize", "drop", "create twice", "create and drop"])
def test_a_concurrently_changed_index_is_remapped_without_another_rewrite(make: Make, change: str) -> None:
    dataset = make()
    if not change.startswith("create"):
        dataset.create_scalar_index("key", "BTREE")
    snapshot = dataset.snapshot
    if change == "optimize":
        lance_ops.write_dataset(dataset.to_table(limit=20), dataset, mode="append")
        dataset.checkout_latest()
    rewrites = [execute_rewrite(task) for task in plan_compaction(snapshot, CompactionOptions()).tasks]
    dataset.delete("id = 5")
    if change == "drop":
        dataset.drop_index("key_idx")
    elif change == "optimize":
        dataset.optimize.optimize_indices()
    else:
        dataset.create_scalar_index("key", "BTREE")
    if change == "create twice":
        dataset.create_scalar_index("key", "BTREE")
    elif change == "create and drop":
        dataset.drop_index("key_idx")
    committed, _ = commit_rewrites(snapshot, rewrites)
    names = {file.path for fragment in committed.fragments for file in fragment.files}
    assert {file.path for rewrite in rewrites for new in rewrite.new_fragments for file in new.files} <= names
    folders = {path.name for path in (Path(dataset.uri) / "_indices").iterdir()}
    named = {str(index.uuid) for version in dataset.versions() for index in indices_of(dataset.uri, version["version"])}
    assert folders == named
    if change.endswith("drop"):
        assert committed.manifest.indices == ()
    else:
        assert_indexed(dataset.uri, num_rows=committed.num_rows, num_fragments=len(committed.fragments))


def test_a_new_index_over_part_of_a_rewritten_group_is_a_retryable_conflict(make: Make) -> None:
    dataset = make(num_fragments=2)
    early = dataset.snapshot
    rewrites = [execute_rewrite(task) for task in plan_compaction(early, CompactionOptions()).tasks]
    dataset.create_scalar_index("key", "BTREE")
    segment = dataset.snapshot.manifest.indices[0]
    part = replace(segment, fragment_bitmap=FrozenBitMap([1]))
    commit_operation(lance_ops.dataset(dataset.uri).snapshot, CreateIndex((part,), (segment,)))
    with pytest.raises(RetryableConflict, match="now covers only a part"):
        commit_rewrites(early, rewrites)
    assert compact_files(early)[0].num_rows == 40


def test_a_compaction_ends_beside_a_writer_that_always_builds_the_index_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make()
    dataset.create_scalar_index("key", "BTREE")
    attempts: list[int] = []

    def commit_too_late(snapshot: Snapshot, operation: Operation, **options: Any) -> Snapshot:
        if isinstance(operation, Rewrite):
            attempts.append(snapshot.version)
            lance_ops.dataset(dataset.uri).create_scalar_index("key", "BTREE")
        return commit_operation(snapshot, operation, **options)

    monkeypatch.setattr(rewriting, "commit_operation", commit_too_late)
    with pytest.raises(TooManyConcurrentWriters, match="a segment of an index was remapped or removed"):
        compact_files(dataset.snapshot, conflict_retries=1)
    assert sorted(Counter(attempts).values()) == [rewriting._MOST_REMAPS] * 2
    assert len(list((Path(dataset.uri) / "data").iterdir())) == 5
    folders = {path.name for path in (Path(dataset.uri) / "_indices").iterdir()}
    versions = lance_ops.dataset(dataset.uri).versions()
    assert folders == {str(index.uuid) for each in versions for index in indices_of(dataset.uri, each["version"])}
    monkeypatch.undo()
    compact_files(dataset.snapshot)
    assert_indexed(dataset.uri, num_rows=100, num_fragments=1)


def indices_of(uri: str, version: int) -> tuple[IndexMetadata, ...]:
    return lance_ops.dataset(uri, version).snapshot.manifest.indices


def assert_indexed(uri: str, num_rows: int, num_fragments: int) -> None:
    """Check that the index on `key` covers all, is used, and finds what a scan finds."""
    dataset = lance_ops.dataset(uri)
    assert dataset.count_rows() == num_rows
    assert len(dataset.get_fragments()) == num_fragments
    assert dataset.index_statistics("key_idx")["num_unindexed_rows"] == 0
    for predicate in ("key < 300", "key = 919", "key IS NULL", "key >= 990"):
        assert "ScalarIndexQuery" in dataset.scanner(filter=predicate).explain_plan()
        assert dataset.to_table(filter=predicate) == dataset.to_table(filter=predicate, use_scalar_index=False)


def test_rows_appended_during_a_compaction_are_kept(make: Make) -> None:
    dataset = make()
    snapshot = dataset.snapshot
    rewrites = [execute_rewrite(task) for task in plan_compaction(snapshot, CompactionOptions()).tasks]
    lance_ops.write_dataset(dataset.to_table(limit=7), dataset.uri, mode="append")
    committed, _ = commit_rewrites(snapshot, rewrites)
    assert committed.num_rows == 107
    assert len(committed.fragments) == 2


def test_of_two_compactions_of_the_same_fragments_one_commits(make: Make) -> None:
    dataset = make()
    snapshot = dataset.snapshot
    plan = plan_compaction(snapshot, CompactionOptions())
    first, second = ([execute_rewrite(task) for task in plan.tasks] for _ in range(2))
    commit_rewrites(snapshot, first)
    with pytest.raises((RetryableConflict, IncompatibleTransaction)):
        commit_rewrites(snapshot, second)
    assert lance_ops.dataset(dataset.uri).count_rows() == 100


def test_a_failed_task_leaves_no_files_of_the_other_tasks(make: Make) -> None:
    dataset = make()
    snapshot = dataset.snapshot
    before = set(Path(dataset.uri).rglob("*"))
    tasks = plan_compaction(snapshot, CompactionOptions(40)).tasks

    def fail_second(task: RewriteTask) -> RewriteOutcome:
        if task == tasks[1]:
            raise OSError("disk on fire")
        return execute_rewrite(task)

    with pytest.raises(OSError, match="disk on fire"):
        InThreads(1).map(fail_second, tasks, discard=lambda outcome: discard_rewrite(snapshot.store, outcome))
    assert set(Path(dataset.uri).rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"target_rows_per_fragment": 0}, InvalidInput),
        ({"materialize_deletions_threshold": -0.5}, InvalidInput),
        ({"defer_index_remap": True}, UnsupportedFeature),
        ({"compaction_mode": "force_binary_copy"}, UnsupportedFeature),
    ],
)
def test_invalid_compaction_options_are_refused(make: Make, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        make(1).optimize.compact_files(**options)


def test_a_fragment_at_its_byte_limit_is_not_rewritten(dataset_uri: str) -> None:
    table = pa.table({"b": [os.urandom(1 << 14) for _ in range(64)]})
    dataset = lance_ops.write_dataset(table, dataset_uri, max_rows_per_file=8)
    first = dataset.optimize.compact_files(max_bytes_per_file=1 << 18)
    assert first.fragments_removed == 8
    version = dataset.version
    again = dataset.optimize.compact_files(max_bytes_per_file=1 << 18)
    assert (again.fragments_removed, dataset.version) == (0, version)
    assert dataset.to_table() == table
