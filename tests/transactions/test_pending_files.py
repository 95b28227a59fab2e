"""Pending files are deleted when it is certain that no version names them, and only then."""

from __future__ import annotations

import pytest

from lance_ops.core.errors import CommitStateUnknown, DatasetAlreadyExists, RetryableConflict, StoreError
from lance_ops.store import MemoryStore
from lance_ops.table import DataFile, Fragment
from lance_ops.table.manifest import FileLocations
from lance_ops.transactions.pending_files import PendingFiles, PendingFilesBuilder


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
