"""Pending files are deleted when it is certain that no version names them, and only then."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lance_ops.core.errors import CommitStateUnknown, DatasetAlreadyExists, RetryableConflict, StoreError
from lance_ops.core.file_names import data_file_name, file_names_of_job, new_deletion_file_id, new_job_token
from lance_ops.store import MemoryStore
from lance_ops.table import DataFile, Fragment
from lance_ops.table.manifest import FileLocations
from lance_ops.transactions.pending_files import PendingFiles, PendingFilesBuilder, remove_files_of_job


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore("pending-files")
    for path in ("data/a.lance", "data/a/1.blob", "data/b.lance", "data/other.lance"):
        store.put(path, b"x")
    return store


@pytest.mark.parametrize(
    ("error", "stay"),
    [
        (StoreError("refused"), False),
        (RetryableConflict("lost"), False),
        (ZeroDivisionError(), False),
        (CommitStateUnknown("a", 2, "no answer"), True),
        (DatasetAlreadyExists("there"), True),
        (KeyboardInterrupt(), True),
        (SystemExit(), True),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, BaseException) else None,
)
def test_files_stay_unless_the_commit_failed_for_certain(store: MemoryStore, error: BaseException, stay: bool) -> None:
    files = PendingFilesBuilder(store)
    files.add("data/a.lance")

    def fail() -> None:
        with files.abandoned_unless_committed(kept_after=(DatasetAlreadyExists,)):
            files.add("data/b.lance")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert [store.exists(path) for path in ("data/a.lance", "data/a/1.blob", "data/b.lance")] == [stay] * 3
    assert store.exists("data/other.lance")


def test_files_of_a_successful_commit_stay(store: MemoryStore) -> None:
    with PendingFiles.at(store, ["data/a.lance"]).abandoned_unless_committed():
        pass
    assert store.exists("data/a.lance")


@pytest.mark.parametrize("error", [CommitStateUnknown("a", 2, "no answer"), KeyboardInterrupt(), StoreError("refused")])
def test_any_failure_before_a_commit_deletes_the_files(store: MemoryStore, error: BaseException) -> None:
    def fail() -> None:
        with PendingFiles.at(store, ["data/a.lance"]).abandoned_on_failure():
            raise error

    with pytest.raises(type(error)):
        fail()
    assert not store.exists("data/a.lance")


def test_a_sum_syncs_and_deletes_the_files_of_both(store: MemoryStore) -> None:
    fragment = Fragment(0, (DataFile("a.lance", (0,), (0,), 2, 2),), 1)
    data = PendingFiles.of_fragments(FileLocations(store), [fragment], durable=False)
    both = data + PendingFiles.at(store, ["data/b.lance"])

    assert (both.unsynced, both.fragments) == (("data/a.lance",), (fragment,))
    both.abandon()
    assert list(store.list_names("data")) == ["other.lance"]


def test_files_kept_on_failure_are_synced_and_not_deleted(store: MemoryStore) -> None:
    kept = PendingFiles.at(store, ["data/a.lance"], durable=False).kept_on_failure()

    assert kept.unsynced == ("data/a.lance",)
    kept.abandon()
    assert store.exists("data/a.lance")


def test_files_are_deleted_in_as_few_requests_as_the_store_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = MemoryStore("few-requests"), MemoryStore("few-requests-elsewhere")
    paths = [f"_deletions/{number}-1-7.arrow" for number in range(7)]
    for store in (here, there):
        for path in paths:
            store.put(path, b"x")
    monkeypatch.setattr(MemoryStore, "deleted_at_once", 3)
    requests: list[tuple[MemoryStore, int]] = []
    delete = MemoryStore.delete_several

    def noted(store: MemoryStore, several: Sequence[str]) -> set[str]:
        requests.append((store, len(several)))
        return delete(store, several)

    monkeypatch.setattr(MemoryStore, "delete_several", noted)
    (PendingFiles.at(here, paths) + PendingFiles.at(there, paths[:2])).abandon()
    assert requests == [(here, 3), (here, 3), (here, 1), (there, 2)]
    assert list(here.list()) == []
    assert [info.path for info in there.list()] == paths[2:]


def test_deletion_files_of_a_job_are_removed_and_no_others(store: MemoryStore) -> None:
    token = new_job_token()
    with file_names_of_job(token):
        ours = [f"_deletions/{number}-1-{new_deletion_file_id()}.bin" for number in range(3)]
        ours.append(f"data/{data_file_name()}")
    theirs = f"_deletions/0-1-{new_deletion_file_id()}.bin"
    for path in (*ours, theirs):
        store.put(path, b"x")
    before = {info.path for info in store.list()}
    remove_files_of_job(store, token)
    assert {info.path for info in store.list()} == before - {*ours}
