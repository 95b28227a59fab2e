"""Branches of a dataset with an external manifest store, in which each branch has its own rows."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers import CommitOutcome, ExternalManifestCommitter, open_root
from lance_ops.core.errors import IncompatibleTransaction, InvalidInput, ReferenceNotFound, RetryableConflict
from lance_ops.store.faulty import SimulatedCrash
from lance_ops.writing.create_append_overwrite import append
from lance_ops.writing.fragment_limits import FragmentLimits
from tests.refs.dead_creations import check_a_dead_creation_is_removed

NOW = timedelta(0)
Options = dict[str, str]


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": range(start, stop)})


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return {"manifest_store": f"sqlite:///{tmp_path / 'manifests.db'}"}


@pytest.fixture
def dataset(dataset_uri: str, options: Options) -> lance_ops.LanceDataset:
    lance_ops.write_dataset(rows(0, 10), dataset_uri, storage_options=options)
    return lance_ops.write_dataset(rows(10, 20), dataset_uri, mode="append", storage_options=options)


def ids(dataset: lance_ops.LanceDataset, branch: str | None) -> list[int]:
    line = dataset.checkout_version((branch, None))
    line.validate()
    assert isinstance(line.snapshot.committer, ExternalManifestCommitter)
    return sorted(line.to_table().column("id").to_pylist())


def test_branches_commit_independently_of_each_other(dataset: lance_ops.LanceDataset) -> None:
    branch = pickle.loads(pickle.dumps(dataset.create_branch("dev", 1)))
    append(branch.snapshot, rows(50, 55).to_batches(), FragmentLimits(), {})
    append(branch.snapshot, rows(55, 60).to_batches(), FragmentLimits(), {})
    branch.checkout_latest()
    branch.delete("id < 5")
    dataset.delete("id >= 15")
    branch.optimize.compact_files()
    child = branch.create_branch("dev/child")
    child.delete("id >= 55")
    branch.tags.create("t", ("dev/child", None))

    assert ids(dataset, "dev") == [*range(5, 10), *range(50, 60)]
    assert ids(dataset, "dev/child") == [*range(5, 10), *range(50, 55)]
    assert ids(dataset, None) == list(range(15))
    assert dataset.checkout_version("t").count_rows() == 10

    for line in (None, "dev", "dev/child"):
        handle = dataset.checkout_version((line, None))
        handle.cleanup_old_versions(NOW, delete_unverified=True, error_if_tagged_old_versions=False)
    assert ids(dataset, "dev") == [*range(5, 10), *range(50, 60)]
    assert ids(dataset, "dev/child") == [*range(5, 10), *range(50, 55)]
    assert ids(dataset, None) == list(range(15))


def test_a_version_removed_from_a_branch_is_not_committed_again(dataset: lance_ops.LanceDataset) -> None:
    stale = dataset.create_branch("dev").snapshot
    branch = dataset.checkout_version(("dev", None))
    branch.delete("id = 1")
    branch.delete("id = 2")
    branch.cleanup_old_versions(NOW)

    with pytest.raises(RetryableConflict, match="cleaned up"):
        append(stale, rows(50, 51).to_batches(), FragmentLimits(), {})
    assert [version["version"] for version in branch.versions()] == [4]


@pytest.mark.parametrize("version", [1, 2])
def test_a_removed_branch_can_be_created_again(dataset: lance_ops.LanceDataset, version: int) -> None:
    branch = dataset.create_branch("dev", 2)
    branch.delete("id = 1")
    stale = branch.snapshot
    dataset.branches.delete("dev")

    with pytest.raises(ReferenceNotFound):
        dataset.branches.delete("dev")
    with pytest.raises(ReferenceNotFound):
        dataset.checkout_version(("dev", None))
    assert dataset.create_branch("dev", version).version == version
    assert ids(dataset, "dev") == list(range(10 * version))
    with pytest.raises(IncompatibleTransaction):
        append(stale, rows(50, 51).to_batches(), FragmentLimits(), {})
    assert ids(dataset, "dev") == list(range(10 * version))


def test_delete_removes_the_files_of_an_interrupted_creation(
    dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_a_dead_creation_is_removed(dataset, monkeypatch)


def test_branch_removal_finishes_an_unfinished_manifest_store_row(
    dataset: lance_ops.LanceDataset, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise SimulatedCrash("between the row and the final name")

    with monkeypatch.context() as patch:
        patch.setattr(ExternalManifestCommitter, "_finish", dies)
        with pytest.raises(SimulatedCrash):
            dataset.create_branch("dev")
    assert open_root(f"{dataset.uri}/tree/dev", options).committer.latest() == 2

    dataset.branches.delete("dev")

    assert [path for path in Path(dataset.uri, "tree").rglob("*") if path.is_file()] == []
    assert dataset.create_branch("dev", 1).count_rows() == 10


def test_two_concurrent_creations_of_a_branch_leave_one(
    dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = ExternalManifestCommitter.commit
    begun: list[bool] = []

    def another_first(committer: ExternalManifestCommitter, *args: Any, **named: Any) -> CommitOutcome:
        if not begun:
            begun.append(True)
            dataset.create_branch("dev", 1)
        return original(committer, *args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(ExternalManifestCommitter, "commit", another_first)
        with pytest.raises(InvalidInput):
            dataset.create_branch("dev", 2)

    branch = dataset.checkout_version(("dev", None))
    branch.delete("id = 1")
    branch.delete("id = 2")
    assert branch.version == 3
    assert ids(dataset, "dev") == [0, *range(3, 10)]
