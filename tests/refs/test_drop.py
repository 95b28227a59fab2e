"""Drop: it can be repeated after an interrupt, and leaves nothing of the dataset in any store."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceDataset
from lance_ops.errors import DatasetNotFound, StoreError
from lance_ops.store import MemoryStore, Store
from lance_ops.store.local.local_store import LocalStore

ROWS = pa.table({"id": range(10)})


def made(uri: str, **options: dict[str, str]) -> LanceDataset:
    """Return a dataset of three versions and a branch."""
    dataset = lance_ops.write_dataset(ROWS, uri, **options)  # type: ignore[arg-type]  # storage options, if any
    dataset.delete("id = 1")
    dataset.create_branch("dev").delete("id = 2")
    dataset.delete("id = 3")
    return dataset


def test_a_drop_interrupted_at_any_step_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delete, calls, dies_at = LocalStore.delete, 0, 0

    def counted(store: LocalStore, path: str) -> None:
        nonlocal calls
        calls += 1
        if calls >= dies_at:
            raise StoreError(f"cannot delete {path}")
        delete(store, path)

    monkeypatch.setattr(LocalStore, "delete_several", Store.delete_several)  # each file is a step
    monkeypatch.setattr(LocalStore, "deleted_at_once", 1)
    template, uri = made(str(tmp_path / "template")).uri, str(tmp_path / "table")
    has_died = True
    while has_died:
        calls, dies_at = 0, dies_at + 1
        shutil.copytree(template, uri)
        monkeypatch.setattr(LocalStore, "delete", counted)
        try:
            LanceDataset.drop(uri)
            has_died = False
        except StoreError:
            monkeypatch.setattr(LocalStore, "delete", delete)
            LanceDataset.drop(uri)
        assert not Path(uri).exists()
    assert dies_at > 10


@pytest.mark.parametrize("what", ["dataset", "branch"])
def test_a_removal_sends_few_requests(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = made(f"memory://few-requests/{what}")
    branch = dataset.checkout_version(("dev", None))
    for value in range(30):
        (dataset if what == "dataset" else branch).insert(pa.table({"id": [value]}))
    one, several = MemoryStore.delete, Store.delete_several
    requests: list[int] = []

    def deletes_one(store: MemoryStore, path: str) -> None:
        requests.append(1)
        one(store, path)

    def deletes_several(store: MemoryStore, paths: Sequence[str]) -> set[str]:
        before = len(requests)
        failed = several(store, paths)
        requests[before:] = [len(paths)]
        return failed

    monkeypatch.setattr(MemoryStore, "delete", deletes_one)
    monkeypatch.setattr(MemoryStore, "delete_several", deletes_several)
    monkeypatch.setattr(MemoryStore, "deleted_at_once", 50)
    num_versions = len((dataset if what == "dataset" else branch).versions())
    if what == "dataset":
        LanceDataset.drop(dataset.uri)
    else:
        dataset.branches.delete("dev")
    assert max(requests) > 20 and len(requests) < num_versions + 15


def test_a_file_that_one_request_for_several_leaves_is_deleted_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = made("memory://left-by-a-request")
    monkeypatch.setattr(MemoryStore, "delete_several", lambda _, paths: {*paths})
    LanceDataset.drop(dataset.uri)
    assert list(dataset.snapshot.store.list()) == []


def test_drop_removes_the_manifest_store_rows_of_all_branches(tmp_path: Path) -> None:
    uri, options = str(tmp_path / "table"), {"manifest_store": f"sqlite:///{tmp_path / 'versions.db'}"}
    made(uri, storage_options=options)
    beside = made(str(tmp_path / "beside"), storage_options=options)
    LanceDataset.drop(uri, options)
    with pytest.raises(DatasetNotFound):
        lance_ops.dataset(uri, storage_options=options)
    with pytest.raises(DatasetNotFound):
        LanceDataset.drop(uri, options)
    again = made(uri, storage_options=options)
    assert (again.version, again.count_rows()) == (3, 8)
    assert again.checkout_version(("dev", None)).count_rows() == 8
    assert beside.latest_version == 3 and beside.checkout_version(("dev", None)).count_rows() == 8


def test_error_messages_of_drop_contain_no_secrets(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="is not a dataset") as caught:
        LanceDataset.drop(tmp_path, {"aws_secret_access_key": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_a_dataset_in_memory_is_dropped() -> None:
    dataset = made("memory://dropped/table")
    LanceDataset.drop(dataset.uri)
    LanceDataset.drop(dataset.uri, ignore_not_found=True)
    with pytest.raises(DatasetNotFound):
        LanceDataset.drop(dataset.uri)
