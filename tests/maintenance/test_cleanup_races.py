"""Clean-up beside tags, branches, restores and prepared commits: they keep their versions, or are refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import refs
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.errors import CorruptFile, StoreError, VersionNotFound
from lance_ops.maintenance.cleanup import cleanup
from lance_ops.maintenance.cleanup.cleanup import execute, plan_cleanup
from lance_ops.maintenance.cleanup.cleanup_options import CleanupOptions
from lance_ops.refs.announced_removals import REMOVALS_DIR
from lance_ops.refs.tags import create_tag
from lance_ops.refs.version_pins import PINS_DIR, pinned

Make = Callable[..., lance_ops.LanceDataset]
NOW = timedelta(0)


def doing_first(monkeypatch: pytest.MonkeyPatch, version: int, action: Callable[[], object]) -> None:
    """Run an action just before clean-up removes a version, which stays if the action raises `StoreError`."""
    remove = PutIfAbsentCommitter.remove_several

    def after_action(self: PutIfAbsentCommitter, removed: Sequence[int]) -> set[int]:
        failed = set()
        for each in removed:
            try:
                if each == version:
                    action()
                failed |= remove(self, [each])
            except StoreError:
                failed.add(each)
        return failed

    monkeypatch.setattr(PutIfAbsentCommitter, "remove_several", after_action)


def test_a_version_tagged_during_its_removal_is_put_back_with_its_files(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make()
    dataset.optimize.compact_files()
    doing_first(monkeypatch, 2, lambda: create_tag(dataset.snapshot.store, "late", 2, 0))  # as the reference does
    stats = dataset.cleanup_old_versions(retain_versions=1)
    assert stats.old_versions == 5
    kept = lance_ops.dataset(dataset.uri, version="late")
    kept.validate()
    assert kept.count_rows() == 40


def test_tag_restore_and_branch_are_refused_for_a_version_under_removal(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make()
    dataset.tags.create("moving")
    dataset.optimize.compact_files()
    dataset.tags.create("newest")
    other = lance_ops.dataset(dataset.uri, 2)
    wishes: dict[str, Callable[[], object]] = {
        "tag": lambda: other.tags.create("late"),
        "move": lambda: other.tags.update("newest"),
        "restore": other.restore,
        "branch": lambda: other.create_branch("late"),
    }

    def wish() -> None:
        for act in wishes.values():
            with pytest.raises(VersionNotFound, match="version 2 is being cleaned up"):
                act()

    doing_first(monkeypatch, 2, wish)
    dataset.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False)
    assert [version["version"] for version in dataset.versions()] == [5, dataset.version]
    assert {name: tag["version"] for name, tag in dataset.tags.list().items()} == {
        "moving": 5,
        "newest": dataset.version,
    }
    assert dataset.branches.list() == {}
    assert [info.path for folder in (PINS_DIR, REMOVALS_DIR) for info in dataset.snapshot.store.list(folder)] == []


def test_an_interrupted_clean_up_s_announcement_counts_until_it_is_old(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die() -> None:
        raise KeyboardInterrupt

    dataset = make()
    doing_first(monkeypatch, 3, die)
    with pytest.raises(KeyboardInterrupt):
        dataset.cleanup_old_versions(NOW)
    monkeypatch.undo()
    (note,) = dataset.snapshot.store.list(REMOVALS_DIR)
    third = dataset.checkout_version(3)
    with pytest.raises(VersionNotFound, match=f"version 3 is being cleaned up .*{note.path}"):
        third.tags.create("third")
    dataset.tags.create("newest")  # the announcement does not contain the newest version

    week_ago = (note.modified - timedelta(days=7, seconds=1)).timestamp()
    os.utime(Path(dataset.uri) / note.path, (week_ago, week_ago))
    third.tags.create("third")
    dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    assert list(dataset.snapshot.store.list(REMOVALS_DIR)) == []
    assert lance_ops.dataset(dataset.uri, "third").to_table().num_rows == 60


def test_a_corrupt_announcement_is_named_in_the_error(make: Make) -> None:
    dataset = make(3)
    dataset.snapshot.store.put(f"{REMOVALS_DIR}/a.json", b"{]")
    with pytest.raises(CorruptFile, match=r"removals/a\.json"):
        dataset.tags.create("tag", 2)


def test_a_failed_clean_up_leaves_no_announcement(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise StoreError("no")

    dataset = make()
    monkeypatch.setattr(cleanup, "add_named_by_others", lambda *_: fail())
    with pytest.raises(StoreError, match="no"):
        dataset.cleanup_old_versions(NOW)
    assert list(dataset.snapshot.store.list(REMOVALS_DIR)) == []


def test_a_tag_made_after_the_plan_keeps_its_version(make: Make) -> None:
    dataset = make()
    dataset.optimize.compact_files()
    plan = plan_cleanup(dataset.snapshot, CleanupOptions(NOW))
    dataset.tags.create("late", 2)
    execute(dataset.snapshot, plan)
    assert lance_ops.dataset(dataset.uri, version="late").to_table().num_rows == 40


def test_tagging_a_version_that_is_removed_meanwhile_leaves_no_tag(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(3)
    dataset.tags.create("moving", 3)
    second = dataset.checkout_version(2)
    monkeypatch.setattr(PutIfAbsentCommitter, "exists", lambda self, version: False)
    with pytest.raises(VersionNotFound, match="version 2 was cleaned up"):
        second.tags.create("late")
    with pytest.raises(VersionNotFound, match="version 2 was cleaned up"):
        second.tags.update("moving")
    assert {name: tag["version"] for name, tag in dataset.tags.list().items()} == {"moving": 3}


def commits_a_restore(uri: str) -> lance_ops.LanceDataset:
    return lance_ops.LanceDataset.commit(uri, lance_ops.LanceOperation.Restore(2))


def commits_a_detached_version(uri: str) -> lance_ops.LanceDataset:
    nothing = lance_ops.LanceOperation.Append([])
    return lance_ops.LanceDataset.commit(uri, nothing, read_version=2, detached=True)


def commits_a_detached_restore(uri: str) -> lance_ops.LanceDataset:
    return lance_ops.LanceDataset.commit(uri, lance_ops.LanceOperation.Restore(2), detached=True)


PREPARED_COMMITS = [commits_a_restore, commits_a_detached_version, commits_a_detached_restore]


@pytest.mark.parametrize("commits", PREPARED_COMMITS)
def test_a_prepared_commit_of_the_files_of_a_version_under_removal_is_refused(
    make: Make, monkeypatch: pytest.MonkeyPatch, commits: Callable[[str], lance_ops.LanceDataset]
) -> None:
    dataset = make()
    dataset.optimize.compact_files()
    tried = []

    def wish() -> None:
        tried.append(2)
        with pytest.raises(VersionNotFound, match="version 2 is being cleaned up"):
            commits(dataset.uri)

    doing_first(monkeypatch, 2, wish)
    dataset.cleanup_old_versions(retain_versions=1)
    assert tried == [2]
    assert [info.path for folder in (PINS_DIR, REMOVALS_DIR) for info in dataset.snapshot.store.list(folder)] == []


@pytest.mark.parametrize("commits", PREPARED_COMMITS)
def test_clean_up_during_a_prepared_commit_keeps_the_files_that_it_takes_over(
    make: Make, monkeypatch: pytest.MonkeyPatch, commits: Callable[[str], lance_ops.LanceDataset]
) -> None:
    dataset = make()
    dataset.optimize.compact_files()
    commit = PutIfAbsentCommitter.commit

    def clean_up_first(self: PutIfAbsentCommitter, version: int, data: bytes, **options: Any) -> object:
        monkeypatch.setattr(PutIfAbsentCommitter, "commit", commit)
        dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
        return commit(self, version, data, **options)

    monkeypatch.setattr(PutIfAbsentCommitter, "commit", clean_up_first)
    made = commits(dataset.uri)
    made.validate()
    assert made.count_rows() == 40
    assert list(dataset.snapshot.store.list(PINS_DIR)) == []


def test_clean_up_during_a_restore_keeps_the_restored_files(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The restore has read version 2; clean-up reads the newest versions before the restore commits one."""
    dataset = make()
    dataset.optimize.compact_files()
    old, commit = lance_ops.dataset(dataset.uri, version=2), PutIfAbsentCommitter.commit

    def clean_up_first(self: PutIfAbsentCommitter, version: int, data: bytes, **options: Any) -> object:
        monkeypatch.setattr(PutIfAbsentCommitter, "commit", commit)
        dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
        return commit(self, version, data, **options)

    monkeypatch.setattr(PutIfAbsentCommitter, "commit", clean_up_first)
    old.restore()
    again = lance_ops.dataset(dataset.uri)
    again.validate()
    assert again.to_table().num_rows == 40
    assert list(again.snapshot.store.list(PINS_DIR)) == []


def test_restoring_a_removed_version_is_refused(make: Make) -> None:
    dataset = make(3)
    old = lance_ops.dataset(dataset.uri, version=2)
    dataset.cleanup_old_versions(NOW)
    with pytest.raises(VersionNotFound, match="has no version 2"):
        old.restore()
    assert list(dataset.snapshot.store.list(PINS_DIR)) == []


def test_a_pin_left_by_a_crash_is_removed_with_unverified_files(make: Make) -> None:
    dataset = make(3)
    with pytest.raises(KeyboardInterrupt), pinned(dataset.checkout_version(2).snapshot):
        raise KeyboardInterrupt
    pin = Path(dataset.uri) / PINS_DIR / "2-dead"
    pin.parent.mkdir(parents=True, exist_ok=True)
    pin.touch()
    dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    assert [version["version"] for version in dataset.versions()] == [2, 3]
    dataset.cleanup_old_versions(NOW, delete_unverified=True)
    assert [version["version"] for version in dataset.versions()] == [3]
    assert not pin.exists()


def test_a_version_that_cannot_be_removed_keeps_its_files(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make()
    dataset.optimize.compact_files()

    def fail() -> None:
        raise StoreError("no")

    doing_first(monkeypatch, 3, fail)
    stats = dataset.cleanup_old_versions(NOW)
    assert (stats.old_versions, stats.failed_deletes) == (5, 1)
    assert [version["version"] for version in dataset.versions()] == [3, dataset.version]
    assert lance_ops.dataset(dataset.uri, version=3).to_table().num_rows == 60


@pytest.mark.parametrize("line", ["main", "branch"])
def test_a_tag_that_moves_back_names_a_version_that_is_still_there(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    main = lance_ops.write_dataset(pa.table({"id": [1]}), dataset_uri)
    table = main if line == "main" else main.create_branch("dev")
    for value in ("a", "b", "c"):
        table.update_config({"k": value})
    table.tags.create("t", table.checkout_version(2).version)

    def cleans_up(_: object) -> None:
        table.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
        raise VersionNotFound("the version is being cleaned up")

    with monkeypatch.context() as patch:
        patch.setattr(refs, "check_version_is_kept", cleans_up)
        with pytest.raises(VersionNotFound, match="being cleaned up"):
            table.tags.update("t", 3)
    assert table.tags.get_version("t") == 2
    assert table.checkout_version("t").count_rows() == 1
    assert not list(table.snapshot.store.list("_lance_ops/pins"))


def test_a_tag_of_a_version_that_is_gone_can_be_moved(dataset_uri: str) -> None:
    table = lance_ops.write_dataset(pa.table({"id": [1]}), dataset_uri)
    table.tags.create("t")
    table.update_config({"k": "v"})
    table.snapshot.committer.remove(1)
    table.tags.update("t", 2)
    assert table.tags.get_version("t") == 2
