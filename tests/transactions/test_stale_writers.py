"""A writer sleeps while others commit, and clean-up or a removal of the dataset changes what it was planned on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceDataset
from lance_ops.committers import CommitOutcome, Committer, ExternalManifestCommitter, PutIfAbsentCommitter
from lance_ops.committers.manifest_stores.sql import SqlManifestStore
from lance_ops.committers.version_hint import VERSION_HINT_PATH
from lance_ops.errors import (
    CommitStateUnknown,
    IncompatibleTransaction,
    RetryableConflict,
    WriteRefused,
)
from lance_ops.maintenance.cleanup.cleanup import CleanupOptions, cleanup_old_versions
from lance_ops.maintenance.cleanup.named_files import NamedFiles
from lance_ops.snapshot import Snapshot
from lance_ops.store import LocalStore, MemoryStore, local
from lance_ops.writing import retry_conflicts
from tests.tagged_listings import tagged_listings

STORES = ["", "memory", "listings", "sqlite"]
KEEP_NEWEST = CleanupOptions(retain_versions=1, error_if_tagged_old_versions=False)

Others = Callable[[LanceDataset], None]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture(params=STORES, ids=["local", "memory", "tagged-listings", "manifest-store"])
def table(request: pytest.FixtureRequest, dataset_uri: str, tmp_path: Path) -> Iterator[LanceDataset]:
    """A table of two versions, on each type of committer, and where listings tell what a manifest holds."""
    with tagged_listings() if request.param == "listings" else nullcontext():
        yield _two_versions(request, dataset_uri, tmp_path)


def _two_versions(request: pytest.FixtureRequest, dataset_uri: str, tmp_path: Path) -> LanceDataset:
    uri = f"memory://{request.node.name}" if request.param in ("memory", "listings") else dataset_uri
    options: Mapping[str, str] | None = None
    if request.param == "sqlite":
        options = {"manifest_store": f"sqlite:///{tmp_path}/rows.sqlite"}
    lance_ops.write_dataset(rows(1, 2), uri, storage_options=options)
    return lance_ops.write_dataset(rows(3), uri, mode="append", storage_options=options)


def while_asleep(monkeypatch: pytest.MonkeyPatch, table: LanceDataset, meanwhile: Callable[[], object]) -> None:
    """Run `meanwhile` before the next call of the committer, when all is judged."""
    kind: type[Committer] = type(table.snapshot.committer)
    commit = kind.commit

    def later(self: Committer, version: int, data: bytes, **options: Any) -> CommitOutcome:
        monkeypatch.undo()
        meanwhile()
        return commit(self, version, data, **options)

    monkeypatch.setattr(kind, "commit", later)


def appends(other: LanceDataset) -> None:
    other.insert(rows(10))
    other.insert(rows(11))


def deletes(other: LanceDataset) -> None:
    other.insert(rows(10))
    other.delete("id = 1")
    other.delete("id = 2")


def configures(other: LanceDataset) -> None:
    for value in ("a", "b", "c"):
        other.update_config({"k": value})


def compacts(other: LanceDataset) -> None:
    other.insert(rows(10))
    other.optimize.compact_files()


OTHERS: list[Others] = [appends, deletes, configures, compacts]


def keep_the_newest(other: LanceDataset) -> None:
    cleanup_old_versions(other.snapshot, KEEP_NEWEST)


def keep_a_tagged_version(other: LanceDataset) -> None:
    other.tags.create("kept", 2)
    cleanup_old_versions(other.snapshot, KEEP_NEWEST)


def remove_only_version_3(other: LanceDataset) -> None:
    cleanup_old_versions(other.snapshot, CleanupOptions(versions=(3,)))


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("clean_up", [keep_the_newest, keep_a_tagged_version, remove_only_version_3])
def test_a_commit_of_a_version_number_that_was_cleaned_up_is_not_a_success(
    table: LanceDataset, monkeypatch: pytest.MonkeyPatch, others: Others, clean_up: Callable[[LanceDataset], None]
) -> None:
    stale, other = (lance_ops.dataset(table.uri, storage_options=table.snapshot.storage_options) for _ in range(2))

    def meanwhile() -> None:
        others(other)
        clean_up(other)

    while_asleep(monkeypatch, table, meanwhile)
    with pytest.raises((CommitStateUnknown, RetryableConflict, WriteRefused)) as caught:
        lance_ops.write_dataset(rows(99), stale, mode="append")
    assert isinstance(caught.value, CommitStateUnknown) is isinstance(table.snapshot.committer, PutIfAbsentCommitter)
    newest = table.checkout_version((None, None))
    assert newest.version == other.version and newest.count_rows("id = 99") == 0
    newest.validate()
    newest.insert(rows(100))
    assert newest.version == other.version + 1 and newest.count_rows("id = 100") == 1


@pytest.mark.parametrize("others", OTHERS)
def test_a_commit_that_others_build_on_at_once_is_a_success(
    table: LanceDataset, monkeypatch: pytest.MonkeyPatch, others: Others
) -> None:
    stale, other = (lance_ops.dataset(table.uri, storage_options=table.snapshot.storage_options) for _ in range(2))
    kind = type(table.snapshot.committer)
    commit = kind.commit

    def first(self: Committer, version: int, data: bytes, **options: Any) -> CommitOutcome:
        monkeypatch.undo()
        outcome = commit(self, version, data, **options)
        other.checkout_latest()
        others(other)
        return outcome

    monkeypatch.setattr(kind, "commit", first)
    written = lance_ops.write_dataset(rows(99), stale, mode="append")
    assert written.version == 3 and other.version > 3 and other.count_rows("id = 99") == 1


@pytest.mark.parametrize("verb", ["config", "delete"])
def test_a_commit_without_new_files_is_checked_by_replaying_the_next_version(
    table: LanceDataset, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    if isinstance(table.snapshot.committer, ExternalManifestCommitter):
        pytest.skip("a manifest store makes no version a second time")

    def change(handle: LanceDataset) -> None:
        if verb == "config":
            handle.update_config({"ours": "1"})
        else:
            handle.delete("id = 3")  # drops the whole fragment

    for revived in (False, True):
        stale = table.checkout_version((None, None))
        other = table.checkout_version((None, None))

        def meanwhile(other: LanceDataset = other) -> None:
            other.insert(rows(10))
            other.insert(rows(11))
            other.tags.create("kept", other.version - 2)
            cleanup_old_versions(other.snapshot, KEEP_NEWEST)

        if revived:
            while_asleep(monkeypatch, table, meanwhile)
            with pytest.raises(CommitStateUnknown, match="cleaned up during"):
                change(stale)
        else:
            change(stale)
            table.insert(rows(3))


Write = Callable[[LanceDataset], object]


def remove_and_create_again(table: LanceDataset, ids: Iterable[int]) -> LanceDataset:
    options = table.snapshot.storage_options
    store, committer = table.snapshot.store, table.snapshot.committer
    for info in [*store.list()]:
        store.delete(info.path)
    committer.forget()
    for row in ids:
        table = lance_ops.write_dataset(rows(row), table.uri, mode="append", storage_options=options)
    return table


def remove_and_branch_again(main: LanceDataset, ids: Iterable[int]) -> LanceDataset:
    main.branches.delete("side")
    made = main.create_branch("side")
    for row in ids:
        made.insert(rows(row))
    return made


def unnamed_files(dataset: LanceDataset, *folders: str) -> list[str]:
    """Return the files in these folders that no version names."""
    named = NamedFiles(dataset.uri)
    for version in dataset.versions():
        named.add(dataset.checkout_version(version["version"]).snapshot.manifest)
    files = [info.path for folder in folders for info in dataset.snapshot.store.list(folder)]
    return [path for path in files if path not in named]


def appends_rows(stale: LanceDataset) -> None:
    stale.insert(rows(99))


def sets_a_key(stale: LanceDataset) -> None:
    stale.update_config({"k": "v"})


@pytest.mark.parametrize(
    ("write", "num_others"),
    [(appends_rows, 2), (sets_a_key, 2), (sets_a_key, 3)],
    ids=["append to the same version", "config of the same version", "config beyond it"],
)
@pytest.mark.parametrize("line", ["main", "branch"])
def test_a_commit_to_a_dataset_created_again_under_the_same_name_is_refused(
    table: LanceDataset, line: str, num_others: int, write: Write
) -> None:
    others = range(50, 50 + num_others)
    if line == "main":
        stale = lance_ops.dataset(table.uri, storage_options=table.snapshot.storage_options)
        anew = remove_and_create_again(table, others)
    else:
        stale = table.create_branch("side")
        stale.insert(rows(4))
        anew = remove_and_branch_again(table, others[:-1])
    before = anew.to_table()
    assert anew.version == stale.version + num_others - 2

    with pytest.raises(IncompatibleTransaction, match="created in its place"):
        write(stale)

    newest = anew.checkout_version((line if line == "main" else "side", None))
    assert newest.version == anew.version and newest.to_table() == before
    assert unnamed_files(newest, "data") == []


def truncates(stale: LanceDataset) -> None:
    stale.truncate_table()


@pytest.mark.parametrize("write", [sets_a_key, truncates])
def test_a_handle_on_a_higher_version_does_not_change_a_dataset_created_again(
    table: LanceDataset, write: Write
) -> None:
    table.insert(rows(4))
    anew = remove_and_create_again(table, (50, 51))

    with pytest.raises(IncompatibleTransaction, match="created in its place"):
        write(table)

    newest = anew.checkout_version((None, None))
    assert newest.version == 2 and newest.to_table() == rows(50, 51)
    assert unnamed_files(newest, "data", "_transactions") == []


@pytest.mark.parametrize("num_others", [2, 3, 4])
def test_a_retry_does_not_go_on_in_a_dataset_created_again(table: LanceDataset, num_others: int) -> None:
    table.insert(rows(4))
    attempts = []

    def attempt(current: Snapshot) -> None:
        attempts.append(current.version)
        remove_and_create_again(table, range(50, 50 + num_others))
        raise RetryableConflict("lost")

    with pytest.raises(IncompatibleTransaction, match="created in its place"):
        retry_conflicts(table.snapshot, attempt, 5)
    assert attempts == [3]


def after_the_last_check(monkeypatch: pytest.MonkeyPatch, table: LanceDataset, meanwhile: Callable[[], object]) -> None:
    """Run `meanwhile` when everything is durable and the version is about to get its name."""
    where: Any = local if isinstance(table.snapshot.store, LocalStore) else MemoryStore
    name = "link_if_absent" if where is local else "put_if_absent"
    if isinstance(table.snapshot.committer, ExternalManifestCommitter):
        where, name = SqlManifestStore, "insert"
    take = getattr(where, name)

    def later(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        meanwhile()
        return take(*arguments, **options)

    monkeypatch.setattr(where, name, later)


@pytest.mark.parametrize("num_others", [0, 1, 2, 3], ids=["none", "fewer versions", "as many", "more"])
@pytest.mark.parametrize("line", ["main", "branch"])
@pytest.mark.parametrize("write", [appends_rows, sets_a_key])
def test_a_dataset_created_again_after_the_last_check_is_not_changed(
    table: LanceDataset, monkeypatch: pytest.MonkeyPatch, line: str, num_others: int, write: Write
) -> None:
    others, anew = range(50, 50 + num_others), table
    if line == "main":
        stale = lance_ops.dataset(table.uri, storage_options=table.snapshot.storage_options)
    else:
        stale = table.create_branch("side")
        stale.insert(rows(4))

    def meanwhile() -> None:
        nonlocal anew
        if line == "main":
            anew = remove_and_create_again(table, others)
        elif num_others:
            anew = remove_and_branch_again(table, others[:-1])
        else:
            table.branches.delete("side")

    after_the_last_check(monkeypatch, stale, meanwhile)
    with pytest.raises((IncompatibleTransaction, CommitStateUnknown)) as caught:
        write(stale)

    store, committer = stale.snapshot.store, stale.snapshot.committer
    if isinstance(caught.value, CommitStateUnknown):  # the staged manifest was removed from the disk
        assert isinstance(store, LocalStore) and (line == "branch" or isinstance(committer, ExternalManifestCommitter))
    if not num_others:
        assert committer.latest() is None
        assert {info.path for info in store.list()} <= {VERSION_HINT_PATH}  # a hint that is too high is ignored
        return
    newest = anew.checkout_version(("side" if line == "branch" else "main", None))
    assert newest.version == anew.version and newest.to_table() == anew.to_table()
    assert unnamed_files(newest, "data", "_transactions") == []
    newest.insert(rows(100))
    assert newest.version == anew.version + 1


@pytest.mark.parametrize("write", [appends_rows, sets_a_key])
@pytest.mark.parametrize("again", [False, True], ids=["dropped", "dropped and begun again"])
def test_a_dataset_dropped_after_the_last_check_gets_no_version(
    table: LanceDataset, monkeypatch: pytest.MonkeyPatch, again: bool, write: Write
) -> None:
    options = table.snapshot.storage_options
    stale = lance_ops.dataset(table.uri, storage_options=options)

    def meanwhile() -> None:
        LanceDataset.drop(table.uri, options)
        if again:
            lance_ops.write_dataset(rows(50), table.uri, storage_options=options)

    after_the_last_check(monkeypatch, stale, meanwhile)
    with pytest.raises((IncompatibleTransaction, CommitStateUnknown)):
        write(stale)

    store, committer = stale.snapshot.store, stale.snapshot.committer
    assert committer.latest() == (1 if again else None)
    if again:
        assert lance_ops.dataset(table.uri, storage_options=options).to_table() == rows(50)
    else:
        assert {info.path for info in store.list()} <= {VERSION_HINT_PATH}


def test_a_version_in_another_dataset_that_others_built_on_is_not_withdrawn(
    table: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(table.snapshot.committer, ExternalManifestCommitter):
        pytest.skip("its staged manifest went with the dataset, and nobody can build on that")
    stale = lance_ops.dataset(table.uri, storage_options=table.snapshot.storage_options)
    after_the_last_check(monkeypatch, stale, lambda: remove_and_create_again(table, (50, 51)))
    kind = type(table.snapshot.committer)
    commit = kind.commit

    def and_others(self: Committer, version: int, data: bytes, **options: Any) -> CommitOutcome:
        outcome = commit(self, version, data, **options)
        monkeypatch.undo()
        lance_ops.dataset(table.uri, storage_options=table.snapshot.storage_options).update_config({"their": "own"})
        return outcome

    monkeypatch.setattr(kind, "commit", and_others)
    with pytest.raises(CommitStateUnknown, match="created in its place"):
        sets_a_key(stale)
    assert stale.snapshot.committer.versions() == [1, 2, 3, 4]


def test_a_lost_race_is_retried_after_clean_up_removed_the_planned_version(
    table: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = lance_ops.dataset(table.uri, storage_options=table.snapshot.storage_options)

    def meanwhile() -> None:
        other.insert(rows(10))
        cleanup_old_versions(other.snapshot, KEEP_NEWEST)

    while_asleep(monkeypatch, table, meanwhile)
    table.insert(rows(4))
    assert table.version == 4 and table.to_table().column("id").to_pylist() == [1, 2, 3, 10, 4]


def test_a_commit_stands_when_clean_up_removes_the_version_before_it(
    table: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(table.snapshot.committer)
    commit = kind.commit

    def first(self: Committer, version: int, data: bytes, **options: Any) -> CommitOutcome:
        monkeypatch.undo()
        outcome = commit(self, version, data, **options)
        cleanup_old_versions(table.checkout_version((None, None)).snapshot, KEEP_NEWEST)
        return outcome

    monkeypatch.setattr(kind, "commit", first)
    table.insert(rows(4))
    assert table.version == 3 and table.count_rows() == 4
    assert table.snapshot.committer.versions() == [3]


def test_a_version_without_a_transaction_file_is_recognised_by_its_manifest(table: LanceDataset) -> None:
    for info in [*table.snapshot.store.list("_transactions")]:
        table.snapshot.store.delete(info.path)

    table.insert(rows(4))

    assert table.version == 3 and table.count_rows() == 4
