"""Clean-up of one branch keeps what others name, and goes on after the version that a branch began with has gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.maintenance.cleanup import (
    CleanupOptions,
    CleanupStats,
    CleanupTasks,
    cleanup_old_versions,
    explain_cleanup_old_versions,
)
from lance_ops.table import encode_manifest
from lance_ops.transactions import Append, read_version
from lance_ops.writing import commit_operation
from tests.pickling_runner import PicklingRunner

NOW = timedelta(0)
WITHOUT_STARTS = CleanupOptions(NOW, keep_branch_starts=False)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids})


def ids(dataset: lance_ops.LanceDataset) -> list[int]:
    found: list[int] = dataset.to_table().column("id").to_pylist()
    return found


def in_process(dataset: lance_ops.LanceDataset) -> CleanupStats:
    return cleanup_old_versions(dataset.snapshot, CleanupOptions(NOW))


def by_tasks(dataset: lance_ops.LanceDataset) -> CleanupStats:
    tasks = CleanupTasks(PicklingRunner(), versions_per_task=2, least_fragments=1)
    return cleanup_old_versions(dataset.snapshot, CleanupOptions(NOW), tasks)


def test_clean_up_goes_on_after_the_version_that_a_branch_began_with_has_gone(dataset_uri: str) -> None:
    main = lance_ops.write_dataset(rows(1), dataset_uri)
    branch = main.create_branch("audit")
    main = lance_ops.write_dataset(rows(2), dataset_uri, mode="overwrite")
    assert cleanup_old_versions(main.snapshot, WITHOUT_STARTS).old_versions == 1
    main = lance_ops.write_dataset(rows(3), dataset_uri, mode="overwrite")
    explained = explain_cleanup_old_versions(main.snapshot, CleanupOptions(NOW))
    stats = cleanup_old_versions(main.snapshot, CleanupOptions(NOW))
    assert stats.data_files_removed == 1, "that of version 2; the branch names that of version 1"
    assert explained.stats == stats and not explained.warnings
    assert ids(branch) == [1] and ids(main) == [3]


@pytest.mark.parametrize("clean_up", [in_process, by_tasks])
@pytest.mark.parametrize("is_newest", [True, False], ids=["newest", "older"])
def test_clean_up_of_a_branch_keeps_what_versions_of_the_main_branch_name(
    dataset_uri: str, is_newest: bool, clean_up: Callable[[lance_ops.LanceDataset], CleanupStats]
) -> None:
    main = lance_ops.write_dataset(rows(1), dataset_uri)
    branch = lance_ops.write_dataset(rows(2), main.create_branch("audit"), mode="append")
    main.add_bases([lance_ops.DatasetBasePath(branch.uri, "audit", is_dataset_root=True)])
    (base,) = main.snapshot.manifest.base_paths
    own = next(each for each in branch.snapshot.fragments if each.files[0].base_id is None)
    borrowed = replace(own, files=tuple(replace(file, base_id=base.id) for file in own.files))
    snapshot = commit_operation(main.snapshot, Append((borrowed,)))
    if not is_newest:
        lance_ops.dataset(dataset_uri, 1).restore()
    branch = lance_ops.write_dataset(rows(3), branch, mode="overwrite")
    assert clean_up(branch).old_versions == 2
    assert ids(lance_ops.LanceDataset.of(snapshot)) == [1, 2]
    assert ids(branch) == [3]


def test_clean_up_keeps_what_a_branch_names_by_another_spelling_of_the_root(dataset_uri: str) -> None:
    main = lance_ops.write_dataset(rows(1), dataset_uri)
    branch = main.create_branch("audit").snapshot
    committed = read_version(branch.store, branch.committer, branch.version)
    (base,) = branch.manifest.base_paths
    elsewhere = replace(branch.manifest, base_paths=(replace(base, path="/mnt/elsewhere/data.lance"),))
    assert committed.transaction is not None
    branch.store.put(
        branch.committer.location(branch.version), encode_manifest(elsewhere, committed.transaction.encode())
    )
    main = lance_ops.write_dataset(rows(2), dataset_uri, mode="overwrite")
    stats = cleanup_old_versions(main.snapshot, WITHOUT_STARTS)
    assert (stats.old_versions, stats.data_files_removed) == (1, 0)
    assert len([*Path(dataset_uri, "data").glob("*.lance")]) == 2
