"""A pin that keeps all later versions keeps those that exist, and holds up no removal of other files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

import lance_ops
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.maintenance.cleanup import cleanup
from lance_ops.maintenance.cleanup.cleanup import execute, plan_cleanup
from lance_ops.maintenance.cleanup.cleanup_options import CleanupOptions
from lance_ops.maintenance.cleanup.version_removal import begin_protected_versions
from lance_ops.refs.version_pins import PINS_DIR, PinnedVersions, pinned, pinned_with_later
from tests.maintenance.conftest import rows

Make = Callable[..., lance_ops.LanceDataset]
ALL_OLD = CleanupOptions(timedelta(0), retain_versions=1)


@pytest.fixture
def compacted(make: Make) -> lance_ops.LanceDataset:
    dataset = make()
    dataset.optimize.compact_files()
    return dataset


def test_a_commit_after_the_snapshot_is_no_missing_version(compacted: lance_ops.LanceDataset) -> None:
    snapshot = compacted.snapshot
    with pinned_with_later(snapshot):
        compacted.insert(rows(100, 110))
        with pinned(compacted.snapshot):
            plan = plan_cleanup(snapshot, ALL_OLD)
    assert plan.missing_versions == ()
    assert plan.old_versions and plan.data_files


@pytest.mark.parametrize("keep", [pinned, pinned_with_later])
def test_a_commit_during_the_removal_holds_up_no_file(
    compacted: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch, keep: Callable[..., Any]
) -> None:
    with pinned_with_later(compacted.snapshot):
        plan = plan_cleanup(compacted.snapshot, ALL_OLD)

        def after_a_commit(*arguments: Any) -> Callable[[], object]:
            def finish() -> object:
                writer = lance_ops.dataset(compacted.uri)
                writer.insert(rows(100, 110))
                with keep(writer.snapshot):
                    return begin_protected_versions(*arguments)()

            return finish

        monkeypatch.setattr(cleanup, "begin_protected_versions", after_a_commit)
        stats = execute(compacted.snapshot, plan)
    assert stats.old_versions == len(plan.old_versions)
    assert stats.data_files_removed == len(plan.data_files) > 0


def test_versions_after_one_that_is_pinned_during_their_removal_are_put_back(
    compacted: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = PutIfAbsentCommitter.remove_several

    def after_a_pin(self: PutIfAbsentCommitter, versions: Sequence[int]) -> set[int]:
        compacted.snapshot.store.put(f"{PINS_DIR}/2-later-0", b"")
        return remove(self, versions)

    monkeypatch.setattr(PutIfAbsentCommitter, "remove_several", after_a_pin)
    compacted.cleanup_old_versions(retain_versions=1)
    assert [version["version"] for version in compacted.versions()] == list(range(2, compacted.version + 1))
    lance_ops.dataset(compacted.uri, version=3).validate()


def test_what_pins_keep() -> None:
    paths = [f"{PINS_DIR}/{name}" for name in ("3-a", "5-later-b", "7-later-c", "9-d", "notes.txt")]
    found = PinnedVersions.by(paths)
    assert [version for version in range(1, 12) if version in found] == [3, 5, 6, 7, 8, 9, 10, 11]
    assert [found.pin_of(version).rpartition("-")[2] for version in (3, 5, 6, 7, 9)] == ["a", "b", "b", "c", "d"]
    assert 4 not in PinnedVersions.by(paths[:1]) and 1 not in PinnedVersions.by([])


def test_an_explanation_tells_pinned_versions_from_tagged_ones(make: Make) -> None:
    dataset = make(num_fragments=9)
    dataset.tags.create("kept", 4)
    with pinned(lance_ops.dataset(dataset.uri, 2).snapshot):
        explained = dataset.explain_cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    tag, pin = explained.warnings
    assert tag == "version 4 is old but tagged: kept"
    assert pin == (
        "clean-up keeps old versions that running work has pinned: 2; if the work was killed, its pin counts until 7 "
        "days after the work began"
    )
    with pinned_with_later(lance_ops.dataset(dataset.uri, 2).snapshot):
        explained = dataset.explain_cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    assert explained.warnings[0] == tag
    assert "has pinned: 2, 3, 5, 6, 7 and 1 more; if the work" in explained.warnings[1]
    assert explained.old_versions == (1,)
