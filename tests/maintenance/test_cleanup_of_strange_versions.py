"""Clean-up meets versions of another dataset, of another release and of a wrong clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lance_ops
from lance_ops import LanceDataset
from lance_ops.errors import DatasetNotFound, IncompatibleTransaction, UnsupportedFeature
from lance_ops.maintenance.batch_ledger import batch_properties, ingested_batches
from lance_ops.maintenance.cleanup import CleanupOptions, begin_held_versions, cleanup, version_removal
from lance_ops.maintenance.cleanup.cleanup import execute, plan_cleanup
from lance_ops.maintenance.debt.inventory import take_inventory
from lance_ops.refs.announced_removals import REMOVALS_DIR
from lance_ops.store import LocalStore
from lance_ops.table import change_manifest, encode_manifest
from lance_ops.table.manifest.feature_flag import FeatureFlag
from lance_ops.transactions import read_version
from tests.maintenance.conftest import forbid_writes, rows

Make = Callable[..., LanceDataset]
NOW = timedelta(0)


def numbers(dataset: LanceDataset) -> list[int]:
    return [version["version"] for version in lance_ops.dataset(dataset.uri).versions()]


def made_again(uri: str) -> LanceDataset:
    LanceDataset.drop(uri)
    lance_ops.write_dataset(rows(0, 1), uri)
    return lance_ops.write_dataset(rows(1, 2), uri, mode="append")


def test_a_dataset_made_again_after_the_plan_gets_no_batches_and_loses_no_version(make: Make) -> None:
    old = make(2)
    old.insert(rows(9, 10), transaction_properties=batch_properties({"day": "token"}))
    plan = plan_cleanup(old.snapshot, CleanupOptions(NOW))
    assert plan.old_versions == (1, 2)
    again = made_again(old.uri)
    with pytest.raises(IncompatibleTransaction, match="that this clean-up was planned on was removed"):
        execute(old.snapshot, plan)
    assert numbers(again) == [1, 2] and again.count_rows() == 2
    assert ingested_batches(again.snapshot) == {}
    assert [*again.snapshot.store.list(REMOVALS_DIR)] == []


@pytest.mark.parametrize("again", [True, False])
def test_a_dataset_removed_during_the_removal_of_its_versions_stops_it(
    make: Make, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    dataset = make(2)

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.undo()
        made_again(dataset.uri) if again else LanceDataset.drop(dataset.uri)
        return begin_held_versions(*arguments)

    monkeypatch.setattr(version_removal, "begin_held_versions", meanwhile)
    with pytest.raises(IncompatibleTransaction if again else DatasetNotFound):
        dataset.cleanup_old_versions(NOW)
    if again:
        assert numbers(dataset) == [1, 2] and lance_ops.dataset(dataset.uri).to_table() == rows(0, 2)


def with_overlays(dataset: LanceDataset, version: int) -> Path:
    """Forge a version with an overlay, which this release does not know; return the path of the old overlay."""
    snapshot = dataset.snapshot
    committed = read_version(snapshot.store, snapshot.committer, version)
    flag = int(FeatureFlag.DATA_OVERLAYS)
    forged = change_manifest(committed.manifest, reader_feature_flags=flag, writer_feature_flags=flag)
    assert committed.transaction is not None
    snapshot.store.put(snapshot.committer.location(version), encode_manifest(forged, committed.transaction.encode()))
    overlay = Path(dataset.uri, "data", "overlay.lance")
    overlay.write_bytes(b"values")
    os.utime(overlay, (0, 0))
    return overlay


def test_clean_up_is_refused_if_a_version_that_stays_may_name_files_in_an_unknown_way(make: Make) -> None:
    dataset = make(3)
    dataset.tags.create("audit", 2)
    overlay = with_overlays(dataset, 2)
    dataset.optimize.compact_files()
    before = {*Path(dataset.uri).rglob("*")}
    with pytest.raises(UnsupportedFeature, match=r"at version 2: .*DATA_OVERLAYS"):
        dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    assert overlay.exists() and {*Path(dataset.uri).rglob("*")} == before


def test_a_version_of_unknown_features_goes_with_its_files(make: Make) -> None:
    dataset = make(3)
    overlay = with_overlays(dataset, 2)
    dataset.optimize.compact_files()
    stats = dataset.cleanup_old_versions(NOW)
    assert (stats.old_versions, stats.data_files_removed) == (dataset.version - 1, 4)
    assert not overlay.exists() and numbers(dataset) == [dataset.version]


def test_a_version_of_a_clock_far_ahead_is_as_old_as_its_file_and_dates_no_later_one(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, clock, stored = make(1), time.time_ns, LocalStore.now
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time_ns", lambda: clock() + 10 * 365 * 86400 * 10**9)
        dataset.insert(rows(1, 2))
    dataset.insert(rows(2, 3), mode="overwrite")
    stamps = [dataset.checkout_version(each).snapshot.manifest.timestamp_ns or 0 for each in (1, 2, 3)]
    assert [round((stamp - clock()) / 86400e9) for stamp in stamps] == [0, 3650, 0]

    options = CleanupOptions(timedelta(days=14))
    for days, old in ((13, ()), (15, (1, 2))):
        monkeypatch.setattr(LocalStore, "now", lambda store, days=days: stored(store) + timedelta(days=days))
        assert plan_cleanup(dataset.snapshot, options).old_versions == old
        counted = take_inventory(dataset.snapshot, options, dataset.snapshot.store.now())
        assert counted.num_removable_versions == len(old)


def test_a_version_of_a_newer_release_that_comes_up_during_a_clean_up_keeps_all_files(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make(2)
    lance_ops.write_dataset(rows(40, 60), dataset.uri, mode="overwrite")
    files = {*Path(dataset.uri, "data").iterdir()}

    def after_a_commit(*arguments: Any) -> Any:
        newer = lance_ops.write_dataset(rows(60, 61), dataset.uri, mode="append")
        forbid_writes(newer.snapshot)
        return version_removal.begin_protected_versions(*arguments)

    monkeypatch.setattr(cleanup, "begin_protected_versions", after_a_commit)
    stats = lance_ops.dataset(dataset.uri).cleanup_old_versions(NOW)
    assert (stats.old_versions, stats.data_files_removed, stats.failed_deletes) == (2, 0, 0)
    assert {*Path(dataset.uri, "data").iterdir()} >= files


def test_an_old_version_of_a_newer_release_that_is_tagged_after_the_plan_keeps_all_files(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make(2)
    lance_ops.write_dataset(rows(40, 60), dataset.uri, mode="overwrite")
    forbid_writes(dataset.checkout_version(2).snapshot)
    files = {*Path(dataset.uri, "data").iterdir()}
    newest = lance_ops.dataset(dataset.uri).snapshot
    plan = plan_cleanup(newest, CleanupOptions(NOW))
    dataset.tags.create("audit", 2)
    stats = execute(newest, plan)
    assert (stats.old_versions, stats.data_files_removed) == (1, 0)
    assert {*Path(dataset.uri, "data").iterdir()} == files
