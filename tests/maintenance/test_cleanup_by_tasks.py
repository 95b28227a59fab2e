"""A clean-up whose manifests, listings and deletions are shared among tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest

import lance_ops
from lance_ops.maintenance.batch_ledger import batch_properties, ingested_batches
from lance_ops.maintenance.cleanup import CleanupOptions, CleanupTasks, cleanup_old_versions
from lance_ops.maintenance.cleanup.cleanup_plan import CleanupPlan, plan_cleanup
from lance_ops.maintenance.cleanup.paced_deletes import DeleteTask, delete_by_tasks
from lance_ops.runners import Job
from lance_ops.store import ObjectInfo
from tests.maintenance.conftest import rows
from tests.pickling_runner import PicklingRunner

T = TypeVar("T")
R = TypeVar("R")
Make = Callable[..., lance_ops.LanceDataset]
OPTIONS = CleanupOptions(timedelta(0), error_if_tagged_old_versions=False)


def tasks(runner: PicklingRunner) -> CleanupTasks:
    """Return tasks that share the work on a small table."""
    return CleanupTasks(runner, versions_per_task=3, deletes_per_task=4, least_fragments=1)


@pytest.fixture
def busy(make: Make) -> lance_ops.LanceDataset:
    """A table with batches, a tag, a branch, deletions, indices, a compaction and a file that no version names."""
    dataset = make(4)
    for number in range(4):
        properties = batch_properties({f"day-{number}": f"token-{number}"})
        dataset.insert(rows(100 + number, 101 + number), transaction_properties=properties)
        dataset.delete(f"id = {number}")
    dataset.create_scalar_index("key", "BTREE")
    dataset.tags.create("audit", 6)
    branch = dataset.create_branch("trial", 3)
    for number in range(4):
        branch.delete(f"id = {number + 10}")
    dataset.optimize.compact_files()
    dataset.delete("id = 30")
    (Path(dataset.uri) / "data" / ("0" * 24 + "ab" * 13 + ".lance")).write_bytes(b"left by a crash")
    return dataset


def same_work(plan: CleanupPlan) -> CleanupPlan:
    """Return a plan without the moment at which it was made."""
    return replace(plan, planned_at=plan.planned_at.min)


def test_tasks_plan_what_one_process_plans(busy: lance_ops.LanceDataset) -> None:
    for options in (
        OPTIONS,
        CleanupOptions(retain_versions=5, error_if_tagged_old_versions=False),
        CleanupOptions(versions=(2, 7, 8)),
        replace(OPTIONS, delete_unverified=True),
    ):
        runner = PicklingRunner()
        plan = plan_cleanup(busy.snapshot, options, tasks(runner))
        assert same_work(plan) == same_work(plan_cleanup(busy.snapshot, options))
        assert plan.old_versions and plan.files
        verbs = dict(runner.jobs)
        assert verbs == {
            "read versions to clean up": 6,
            "read branch trial to clean up": 2,
            "list folders to clean up": 4,
        }


def test_tasks_tell_no_file_of_fragments_that_the_newest_version_has(make: Make) -> None:
    dataset = make(60, 1)
    runner = PicklingRunner()
    plan_cleanup(dataset.snapshot, OPTIONS, replace(tasks(runner), versions_per_task=20))
    assert runner.jobs == [("read versions to clean up", 3), ("list folders to clean up", 4)]
    assert max(runner.outcome_bytes[:3]) < 20 * 90  # the name of a transaction for each version
    assert runner.outcome_bytes[3] < 10  # no data file


def test_a_clean_up_by_tasks_leaves_the_table_its_tags_branches_and_batches(busy: lance_ops.LanceDataset) -> None:
    readable = {None: busy, "audit": busy.checkout_version("audit"), "trial": busy.checkout_version(("trial", None))}
    before = {name: version.to_table() for name, version in readable.items()}
    assert [table.num_rows for table in before.values()] == [79, 80, 56]
    expected = plan_cleanup(busy.snapshot, OPTIONS)
    runner = PicklingRunner()
    stats = cleanup_old_versions(busy.snapshot, OPTIONS, tasks(runner))
    assert stats.old_versions == len(expected.old_versions) > 8
    assert (stats.data_files_removed, stats.failed_deletes) == (len(expected.data_files), 0)
    assert dict(runner.jobs)["delete files of"] == -(-len(expected.files) // 4)
    again = lance_ops.dataset(busy.uri)
    assert again.to_table() == before[None] and again.verify().ok
    assert set(ingested_batches(again.snapshot)) == {f"day-{number}" for number in range(4)}
    assert again.checkout_version("audit").to_table() == before["audit"]
    assert again.checkout_version(("trial", None)).to_table() == before["trial"]
    assert not plan_cleanup(again.snapshot, OPTIONS).files


@pytest.mark.parametrize(("limit", "shares"), [(None, [None] * 3), (1000, [333] * 3), (2, [1] * 2), (1, [1])])
def test_tasks_share_the_limit_on_deletes_in_a_second(
    busy: lance_ops.LanceDataset,
    monkeypatch: pytest.MonkeyPatch,
    limit: int | None,
    shares: list[int | None],
) -> None:
    rates: list[int | None] = []
    deleted: list[str] = []

    def record(task: DeleteTask, infos: Sequence[ObjectInfo]) -> set[str]:
        rates.append(task.per_second)
        deleted.extend(info.path for info in infos)
        return {infos[0].path}

    monkeypatch.setattr(DeleteTask, "__call__", record)
    infos = plan_cleanup(busy.snapshot, OPTIONS).files[:12]
    gone, failed = delete_by_tasks(busy.snapshot, infos, tasks(PicklingRunner()), limit, 16)
    assert rates == shares
    assert deleted == [info.path for info in infos]
    assert (len(gone), len(failed)) == (12 - len(shares), len(shares))


class RemovingRunner(PicklingRunner):
    """Removes the second newest version before the first tasks run, as another clean-up may."""

    def __init__(self, dataset: lance_ops.LanceDataset) -> None:
        super().__init__()
        self.dataset = dataset

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        if not self.jobs:
            self.dataset.snapshot.committer.remove(self.dataset.version - 1)
        return super().map(function, tasks, job, discard)


def test_another_version_is_kept_for_one_that_vanished_from_the_newest(make: Make) -> None:
    dataset = make(12)
    plan = plan_cleanup(dataset.snapshot, CleanupOptions(retain_versions=4), tasks(RemovingRunner(dataset)))
    assert plan.kept_versions == (12, 10, 9, 8)
