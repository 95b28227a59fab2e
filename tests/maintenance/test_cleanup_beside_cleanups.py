"""Clean-ups beside each other keep the files of every version that one of them puts back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

import lance_ops
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.maintenance.cleanup import cleanup_plan
from lance_ops.maintenance.cleanup.cleanup import execute, plan_cleanup
from lance_ops.maintenance.cleanup.cleanup_options import CleanupOptions
from lance_ops.refs.tags import create_tag

Make = Callable[..., lance_ops.LanceDataset]
NOW = timedelta(0)


def test_two_concurrent_clean_ups_both_succeed(make: Make) -> None:
    dataset = make()
    plan = plan_cleanup(dataset.snapshot, CleanupOptions(NOW))
    dataset.cleanup_old_versions(NOW)
    assert execute(dataset.snapshot, plan).failed_deletes == 0
    dataset.validate()


@pytest.mark.parametrize("planned", ["before", "meanwhile"])
def test_concurrent_clean_ups_keep_the_files_of_a_version_put_back(
    make: Make, monkeypatch: pytest.MonkeyPatch, planned: str
) -> None:
    """A tag is written before the first clean-up removes its version; the second finds that version missing."""
    monkeypatch.setattr(cleanup_plan, "UNVERIFIED_AGE", timedelta(-1))
    dataset = make()
    dataset.optimize.compact_files()
    snapshot = lance_ops.dataset(dataset.uri).snapshot
    early = plan_cleanup(snapshot, CleanupOptions(NOW))
    remove = PutIfAbsentCommitter.remove_several

    def with_others(self: PutIfAbsentCommitter, versions: Sequence[int]) -> set[int]:
        create_tag(snapshot.store, "late", 2, 0)
        assert versions[:2] == [1, 2] and not remove(self, [1, 2])
        monkeypatch.setattr(PutIfAbsentCommitter, "remove_several", remove)
        options = CleanupOptions(NOW, error_if_tagged_old_versions=False)
        execute(snapshot, early if planned == "before" else plan_cleanup(snapshot, options))
        return remove(self, versions[2:])

    monkeypatch.setattr(PutIfAbsentCommitter, "remove_several", with_others)
    dataset.cleanup_old_versions(NOW)

    kept = lance_ops.dataset(dataset.uri, version="late")
    kept.validate()
    assert kept.to_table().num_rows == 40
    assert [version["version"] for version in dataset.versions()] == [2, dataset.version]
    dataset.tags.delete("late")
    dataset.cleanup_old_versions(NOW)
    assert len(list(snapshot.store.list("data"))) == 1


def test_a_version_put_back_after_the_plan_keeps_its_files(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup_plan, "UNVERIFIED_AGE", timedelta(-1))
    dataset = make()
    dataset.optimize.compact_files()
    snapshot = lance_ops.dataset(dataset.uri).snapshot
    location, manifest = snapshot.committer.location(2), snapshot.committer.read(2)
    snapshot.committer.remove(2)
    plan = plan_cleanup(snapshot, CleanupOptions(NOW))
    snapshot.store.put(location, manifest)

    execute(snapshot, plan)

    lance_ops.dataset(dataset.uri, 2).validate()
