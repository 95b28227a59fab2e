"""Compactions in several commits and within bounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lance_ops
from lance_ops.errors import InvalidInput, TooManyConcurrentWriters
from lance_ops.maintenance.compaction import CompactionOptions, compacting, compaction_plan, plan_compaction
from lance_ops.maintenance.compaction.compaction_plan import RewriteTask
from lance_ops.maintenance.compaction.rewriting import RewriteOutcome, commit_rewrites, execute_rewrite
from lance_ops.maintenance.debt import DebtPolicy, measure_debt
from lance_ops.maintenance.health import health
from tests.maintenance.conftest import rows
from tests.pickling_runner import PicklingRunner

Make = Callable[..., lance_ops.LanceDataset]


def ids(dataset: lance_ops.LanceDataset) -> list[int]:
    return sorted(dataset.to_table(columns=["id"])["id"].to_pylist())


def num_rewrites(dataset: lance_ops.LanceDataset) -> int:
    transactions = (dataset.read_transaction(version["version"]) for version in dataset.versions())
    return sum(each is not None and each.operation.name == "Rewrite" for each in transactions)


def data_files(dataset: lance_ops.LanceDataset) -> set[str]:
    return {path.name for path in Path(dataset.uri, "data").iterdir()}


def compact_beside(uri: str, *fragment_ids: int) -> None:
    """Rewrite fragments as another writer does."""
    snapshot = lance_ops.dataset(uri).snapshot
    (task,) = (
        task
        for task in plan_compaction(snapshot, CompactionOptions(target_rows_per_fragment=40)).tasks
        if task.fragment_ids == fragment_ids
    )
    commit_rewrites(snapshot, [execute_rewrite(task)])


@pytest.mark.parametrize(("max_commits", "commits"), [(1, 1), (2, 2), (3, 3), (9, 4)])
def test_a_compaction_commits_in_so_many_steps(make: Make, max_commits: int, commits: int) -> None:
    dataset = make(8)
    dataset.create_scalar_index("key", "BTREE")
    runner = PicklingRunner()
    metrics = dataset.optimize.compact_files(target_rows_per_fragment=40, max_commits=max_commits, runner=runner)
    assert (metrics.fragments_removed, metrics.fragments_added, metrics.files_removed) == (8, 4, 8)
    assert (num_rewrites(dataset), len(runner.jobs)) == (commits, commits)
    assert sum(num_tasks for _, num_tasks in runner.jobs) == 4
    assert ids(dataset) == list(range(160))
    assert dataset.to_table(filter="key = 919")["id"].to_pylist() == [1]
    (covered,) = dataset.describe_indices()
    assert covered.num_rows_indexed == 160


def test_a_conflict_loses_only_the_groups_of_its_commit(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(6)
    executed: list[tuple[int, ...]] = []

    def overtaken(task: RewriteTask) -> RewriteOutcome:
        executed.append(task.fragment_ids)
        outcome = execute_rewrite(task)
        if task.fragment_ids == (2, 3):
            compact_beside(dataset.uri, 2, 3)
        return outcome

    monkeypatch.setattr(compacting, "execute_rewrite", overtaken)
    metrics = dataset.optimize.compact_files(target_rows_per_fragment=40, max_commits=3)
    assert executed == [(0, 1), (2, 3), (4, 5)]
    assert metrics.fragments_removed == 4
    assert len(dataset.get_fragments()) == 3
    assert ids(dataset) == list(range(120))
    named = {path for part in dataset.get_fragments() for path in (file.path for file in part.data_files())}
    before = {file.path for part in dataset.checkout_version(6).get_fragments() for file in part.data_files()}
    assert data_files(dataset) == named | before


def test_commits_before_a_failing_task_stay(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(6)

    def failing(task: RewriteTask) -> RewriteOutcome:
        if task.fragment_ids == (2, 3):
            raise OSError("disk on fire")
        return execute_rewrite(task)

    monkeypatch.setattr(compacting, "execute_rewrite", failing)
    with pytest.raises(OSError, match="disk on fire"):
        dataset.optimize.compact_files(target_rows_per_fragment=40, max_commits=3)
    newest = lance_ops.dataset(dataset.uri)
    assert (len(newest.get_fragments()), num_rewrites(newest)) == (5, 1)
    assert ids(newest) == list(range(120))


def test_without_time_one_task_is_done(make: Make) -> None:
    dataset = make(6)
    metrics = dataset.optimize.compact_files(target_rows_per_fragment=40, max_seconds=0)
    assert (metrics.fragments_removed, metrics.fragments_added) == (2, 1)
    metrics = dataset.optimize.compact_files(target_rows_per_fragment=40, max_seconds=0, max_commits=5)
    assert (metrics.fragments_removed, metrics.fragments_added) == (2, 1)
    metrics = dataset.optimize.compact_files(target_rows_per_fragment=40, max_seconds=3600.5)
    assert (metrics.fragments_removed, metrics.fragments_added) == (2, 1)
    assert ids(dataset) == list(range(120))


@pytest.mark.parametrize("num_fragments", [2, 4])
def test_without_time_for_another_attempt_a_conflict_matters_only_if_nothing_was_done(
    make: Make, monkeypatch: pytest.MonkeyPatch, num_fragments: int
) -> None:
    dataset = make(num_fragments)

    def overtaken(task: RewriteTask) -> RewriteOutcome:
        outcome = execute_rewrite(task)
        if task.fragment_ids[-1] == num_fragments - 1:
            compact_beside(dataset.uri, *task.fragment_ids)
            monkeypatch.setattr(compacting, "time", SimpleNamespace(time=lambda: float("inf")))
        return outcome

    monkeypatch.setattr(compacting, "execute_rewrite", overtaken)
    options = CompactionOptions(target_rows_per_fragment=40, max_commits=2, max_seconds=3600)
    if num_fragments == 2:
        with pytest.raises(TooManyConcurrentWriters):
            compacting.compact_files(dataset.snapshot, options, conflict_retries=0)
    else:
        _, metrics = compacting.compact_files(dataset.snapshot, options, conflict_retries=0)
        assert metrics.fragments_removed == 2
    assert len(lance_ops.dataset(dataset.uri).get_fragments()) == num_fragments // 2


def test_the_worst_groups_go_first_and_no_more_is_rewritten_than_the_limits_allow(make: Make) -> None:
    dataset = make(12)
    dataset.delete("id >= 180 and id < 195")  # of fragment 9
    excluded: tuple[int, ...] = (3, 8)  # they cut the fragments into runs of 3, 4 and 3

    def planned(**options: Any) -> list[tuple[int, ...]]:
        found = plan_compaction(dataset.snapshot, CompactionOptions(excluded_fragment_ids=excluded, **options))
        return [task.fragment_ids for task in found.tasks]

    assert planned() == [(0, 1, 2), (4, 5, 6, 7), (9, 10, 11)]
    assert planned(worst_first=True) == [(4, 5, 6, 7), (9, 10, 11), (0, 1, 2)]
    assert planned(max_source_fragments=6) == [(0, 1, 2), (4, 5, 6)]
    assert planned(max_source_fragments=4) == [(0, 1, 2), (9,)]  # fragment 9 has deleted rows
    assert planned(max_source_rows=20) == planned(max_source_fragments=1) == [(9,)]
    assert planned(max_source_rows=50) == [(0, 1), (9,)]
    assert planned(max_source_bytes=1) == []
    assert planned(worst_first=True, max_source_fragments=7) == [(4, 5, 6, 7), (9, 10, 11)]
    excluded = (3, 8, 11)
    assert planned(worst_first=True, max_source_rows=110) == [(4, 5, 6, 7), (9, 10)]
    assert planned(worst_first=True, max_source_fragments=3) == [(4, 5, 6)]
    assert planned(worst_first=True, max_source_fragments=1) == [(9,)]


def test_a_fragment_that_exceeds_the_limits_blocks_no_other(make: Make, dataset_uri: str) -> None:
    make(2)
    lance_ops.write_dataset(rows(100, 300), dataset_uri, mode="append")
    make(3)
    lance_ops.write_dataset(rows(100, 300), dataset_uri, mode="append")
    dataset = make(2)

    def planned(**options: Any) -> list[tuple[int, ...]]:
        return [task.fragment_ids for task in plan_compaction(dataset.snapshot, CompactionOptions(**options)).tasks]

    assert planned(max_source_rows=199) == [(0, 1), (3, 4, 5), (7, 8)]
    assert planned(max_source_rows=100) == [(0, 1), (3, 4, 5)]
    assert planned(max_source_rows=90) == [(0, 1), (3, 4)]
    assert planned(target_rows_per_fragment=60, max_source_rows=90) == [(0, 1), (3, 4)]
    while dataset.optimize.compact_files(max_source_rows=190).fragments_removed:
        pass
    assert [fragment.count_rows() for fragment in dataset.get_fragments()] == [200, 200, 140]


@pytest.mark.parametrize(
    "options",
    [
        {"max_commits": 0},
        {"max_seconds": -1},
        {"max_seconds": float("nan")},
        {"max_source_fragments": 0},
        {"max_source_rows": 0},
        {"max_source_bytes": -1},
    ],
)
def test_bounds_that_cannot_be_used_are_refused(make: Make, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        make(1).optimize.compact_files(**options)


def test_a_group_ends_when_its_bytes_are_enough_for_a_task(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(7)
    of_fragment = dataset.snapshot.fragments[0].files[0].file_size_bytes
    monkeypatch.setattr(compaction_plan, "_BYTES_OF_TASK", 3 * of_fragment // 2)
    planned = [task.fragment_ids for task in plan_compaction(dataset.snapshot, CompactionOptions()).tasks]
    assert planned == [(0, 1), (2, 3), (4, 5)]
    dataset.optimize.compact_files()
    assert ids(dataset) == list(range(140))
    monkeypatch.setattr(compaction_plan, "_BYTES_OF_TASK", of_fragment // 2)
    assert not plan_compaction(dataset.snapshot, CompactionOptions()).tasks, "each fragment is a task's work"
    larger = CompactionOptions(max_bytes_per_file=100 * of_fragment)
    (task,) = plan_compaction(dataset.snapshot, larger).tasks
    assert len(task.fragment_ids) == 4, "a caller who wants larger files gets larger tasks"


def test_a_fragment_that_is_full_by_its_bytes_is_not_small(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(4)
    of_fragment = dataset.snapshot.fragments[0].files[0].file_size_bytes
    assert health(dataset.snapshot).num_small_fragments == 4
    by_policy = DebtPolicy(compaction=CompactionOptions(max_bytes_per_file=of_fragment // 2))
    assert measure_debt(dataset.snapshot, by_policy).health.num_small_fragments == 0
    monkeypatch.setattr(compaction_plan, "_BYTES_OF_TASK", 3 * of_fragment // 2)
    dataset.optimize.compact_files()
    monkeypatch.setattr(compaction_plan, "_BYTES_OF_TASK", of_fragment)
    assert (len(dataset.get_fragments()), health(dataset.snapshot).num_small_fragments) == (2, 0)
