"""Clones: shared and copied files, refused clones, and the files that failed clones leave."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.core.errors import (
    CommitStateUnknown,
    CorruptFile,
    DatasetAlreadyExists,
    StoreError,
    StoreUnreachable,
    UnsafePath,
    UnsupportedFeature,
    VersionNotFound,
)
from lance_ops.refs import clone as clones
from lance_ops.refs.announced_removals import REMOVALS_DIR
from lance_ops.refs.clone import deep_clone, shallow_clone
from lance_ops.refs.version_pins import PINS_DIR
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.snapshot.validation import validate
from lance_ops.store import FsspecStore, LocalStore
from lance_ops.table import BasePath, DataFile, ExternalFile, FragmentList, encode_manifest
from lance_ops.table.manifest.file_locations import FileLocations
from lance_ops.transactions import Clone, Transaction, commit, commit_clone
from tests.pickling_runner import PicklingRunner


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": range(start, stop)})


def ids(dataset: lance_ops.LanceDataset | Snapshot) -> list[int]:
    opened = lance_ops.LanceDataset.of(dataset) if isinstance(dataset, Snapshot) else dataset
    found: list[int] = opened.to_table().column("id").to_pylist()
    return found


@pytest.fixture
def source(dataset_uri: str) -> lance_ops.LanceDataset:
    lance_ops.write_dataset(rows(0, 30), dataset_uri, max_rows_per_file=10)
    dataset = lance_ops.dataset(dataset_uri)
    dataset.delete("id = 3")
    return dataset


def files(uri: str | Path) -> set[str]:
    return {str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()}


def test_a_pickled_clone_reads_its_base_paths(source: lance_ops.LanceDataset, tmp_path: Path) -> None:
    clone = source.shallow_clone(tmp_path / "clone", 2)
    again = pickle.loads(pickle.dumps(clone))
    assert again.version == 2 and ids(again) == ids(source)


def test_a_clone_into_another_kind_of_store_reads_its_source(source: lance_ops.LanceDataset) -> None:
    target = f"memory://clone-of{source.uri}"
    shallow = shallow_clone(source.snapshot, target)
    validate(shallow)
    deep = deep_clone(shallow, f"{target}-deep")
    validate(deep)
    assert ids(shallow) == ids(deep) == ids(source)
    assert deep.manifest.base_paths == () and len(list(deep.store.list("data"))) == 3


@pytest.mark.parametrize("verb", ["shallow_clone", "deep_clone"])
def test_a_clone_onto_a_dataset_is_refused(source: lance_ops.LanceDataset, tmp_path: Path, verb: str) -> None:
    taken = lance_ops.write_dataset(rows(0, 1), str(tmp_path / "taken"))
    before = files(taken.uri)
    with pytest.raises(DatasetAlreadyExists):
        getattr(source, verb)(taken.uri, 2)
    with pytest.raises(VersionNotFound):
        getattr(source, verb)(tmp_path / "free", 9)
    assert files(taken.uri) == before and not (tmp_path / "free").exists()


def test_a_failed_deep_clone_leaves_no_files(
    source: lance_ops.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, opened = LocalStore.open_writer, []

    def failing(self: LocalStore, path: str, **options: Any) -> Any:
        opened.append(path)
        if len(opened) == 3:
            raise StoreError("the disk is full")
        return original(self, path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "open_writer", failing)
        with pytest.raises(StoreError, match="full"):
            source.deep_clone(tmp_path / "copy", 2)
    assert len(opened) >= 3 and files(tmp_path / "copy") == set()
    assert ids(source.deep_clone(tmp_path / "copy", 2)) == ids(source)


def test_a_deep_clone_copies_by_small_tasks_and_verifies_sizes(source: lance_ops.LanceDataset, tmp_path: Path) -> None:
    source.create_scalar_index("id", "BTREE")
    runner = PicklingRunner()
    clone = source.deep_clone(tmp_path / "copy", source.version, runner=runner)
    num_files = sum(path.startswith(("data/", "_deletions/", "_indices/")) for path in files(clone.uri))
    assert runner.jobs == [("clone", num_files)] == [("clone", 6)]
    assert max(runner.task_bytes) < 3_000 and max(runner.outcome_bytes) < 100
    assert ids(clone) == ids(source) and clone.verify().ok
    for path in Path(source.uri, "data").iterdir():
        path.write_bytes(b"\0" * 100 + path.read_bytes())
    with pytest.raises(CorruptFile):
        lance_ops.dataset(source.uri).deep_clone(tmp_path / "other", source.version, runner=runner)
    assert files(tmp_path / "other") == set()


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)], ids=["lower first", "higher first"])
@pytest.mark.parametrize("goes_on", [False, True], ids=["alone", "with a commit"])
def test_two_concurrent_clones_with_different_version_numbers_leave_one(
    source: lance_ops.LanceDataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: int,
    second: int,
    goes_on: bool,
) -> None:
    uri, original = str(tmp_path / "clone"), PutIfAbsentCommitter.commit

    def beaten(self: PutIfAbsentCommitter, version: int, data: bytes, **options: Any) -> Any:
        with monkeypatch.context() as inner:
            inner.setattr(PutIfAbsentCommitter, "commit", original)
            winner = source.shallow_clone(uri, first)
            if goes_on and first > second:
                winner.delete("id = 1")
        return original(self, version, data, **options)

    with monkeypatch.context() as patch:
        patch.setattr(PutIfAbsentCommitter, "commit", beaten)
        with pytest.raises(DatasetAlreadyExists, match=f"version {first}"):
            source.shallow_clone(uri, second)
    clone = lance_ops.dataset(uri)
    assert next(version["version"] for version in clone.versions()) == first
    assert len(ids(clone.checkout_version(first))) == (30 if first == 1 else 29)
    assert len(files(Path(uri, "_transactions"))) == len(clone.versions())


def test_a_clone_that_others_build_on_at_once_is_a_success(
    source: lance_ops.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, original = str(tmp_path / "clone"), PutIfAbsentCommitter.commit

    def and_others(self: PutIfAbsentCommitter, version: int, data: bytes, **options: Any) -> Any:
        monkeypatch.undo()
        outcome = original(self, version, data, **options)
        lance_ops.dataset(uri).delete("id = 1")
        return outcome

    monkeypatch.setattr(PutIfAbsentCommitter, "commit", and_others)
    assert source.shallow_clone(uri, 1).version == 1
    assert lance_ops.dataset(uri).version == 2


def test_a_clone_operation_cannot_be_committed_to_a_table(source: lance_ops.LanceDataset) -> None:
    snapshot = source.snapshot
    with pytest.raises(UnsupportedFeature, match="creates a table"):
        commit(snapshot.committer, snapshot.store, Transaction(2, Clone(True, 2, "/elsewhere")))
    assert source.latest_version == 2


def test_concurrent_changes_of_a_clone_merge_inherited_deletions(
    source: lance_ops.LanceDataset, tmp_path: Path
) -> None:
    clone = source.shallow_clone(tmp_path / "clone", 2)
    before = files(source.uri)
    others = [lance_ops.dataset(clone.uri) for _ in range(4)]
    clone.delete("id = 5")
    others[0].delete("id = 7")
    others[1].update({"id": "id + 1000"}, where="id = 8")
    others[2].optimize.compact_files()
    others[3].delete("id = 9")
    lance_ops.dataset(clone.uri).validate()
    assert sorted(ids(lance_ops.dataset(clone.uri))) == [0, 1, 2, 4, 6, *range(10, 30), 1008]
    assert files(source.uri) == before


def test_clean_up_of_a_clone_removes_no_file_of_its_source(source: lance_ops.LanceDataset, tmp_path: Path) -> None:
    before = files(source.uri)
    clone = source.shallow_clone(tmp_path / "clone", 2)
    clone.delete("id < 20")
    clone.optimize.compact_files()
    stats = clone.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert (stats.old_versions, stats.data_files_removed) == (clone.latest_version - 2, 0)
    assert files(source.uri) == before and ids(clone) == list(range(20, 30))


def test_clean_up_keeps_files_named_through_a_base_path_to_its_own_root(source: lance_ops.LanceDataset) -> None:
    """Files named through a base path to the table's own root count as needed, however the root is written."""
    snapshot = source.snapshot
    link = Path(f"{source.uri}-link")
    link.symlink_to(source.uri)
    bases = (BasePath(4, f"file://{link}", is_dataset_root=True), BasePath(5, f"{source.uri}/data"))

    def under(base_id: int, file: DataFile) -> DataFile:
        return replace(file, base_id=base_id)

    first, second, third = snapshot.manifest.fragments
    fragments = [replace(f, files=tuple(under(b, file) for file in f.files)) for f, b in ((first, 4), (second, 5))]
    forged = replace(snapshot.manifest, version=3, base_paths=bases, fragments=FragmentList([*fragments, third]))

    snapshot.committer.commit(3, encode_manifest(forged, Transaction(2, Clone(True, 2, "/x")).encode()))
    newest = lance_ops.dataset(source.uri)
    before = {path for path in files(source.uri) if path.startswith(("data", "_deletions"))}
    assert newest.version == 3 and ids(newest) == ids(source)
    newest.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert {path for path in files(source.uri) if path.startswith(("data", "_deletions"))} == before


class CleaningRunner(PicklingRunner):
    """Replaces the source's content and cleans it up before the first task, as another process may."""

    def __init__(self, source: lance_ops.LanceDataset) -> None:
        super().__init__()
        self.source = source

    def map(self, *arguments: Any, **options: Any) -> list[Any]:
        removed_meanwhile(self.source)
        return super().map(*arguments, **options)


def removed_meanwhile(source: lance_ops.LanceDataset) -> None:
    lance_ops.write_dataset(rows(50, 51), source.uri, mode="overwrite")
    lance_ops.dataset(source.uri).cleanup_old_versions(timedelta(0))


def test_clean_up_beside_a_clone_keeps_the_version_until_it_is_made(
    source: lance_ops.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = deep_clone(source.snapshot, str(tmp_path / "deep"), runner=CleaningRunner(source))
    assert len(ids(deep)) == 29

    def after_a_clean_up(*arguments: Any) -> Any:
        removed_meanwhile(source)
        return commit_clone(*arguments)

    monkeypatch.setattr(clones, "commit_clone", after_a_clean_up)
    assert len(ids(shallow_clone(source.snapshot, str(tmp_path / "shallow")))) == 29
    assert not [*source.snapshot.store.list(PINS_DIR)]
    lance_ops.dataset(source.uri).cleanup_old_versions(timedelta(0))
    for kind in (deep_clone, shallow_clone):
        with pytest.raises(VersionNotFound, match="version 2 was cleaned up"):
            kind(source.snapshot, str(tmp_path / "late"))


def test_a_source_that_cannot_be_written_to_is_cloned(
    source: lance_ops.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalStore.put

    def refused(store: LocalStore, path: str, *arguments: Any, **options: Any) -> None:
        if store.uri == source.uri:
            raise StoreError("read-only file system")
        put(store, path, *arguments, **options)

    monkeypatch.setattr(LocalStore, "put", refused)
    assert len(ids(deep_clone(source.snapshot, str(tmp_path / "deep")))) == 29
    assert len(ids(shallow_clone(source.snapshot, str(tmp_path / "shallow")))) == 29


@pytest.mark.parametrize(("operation", "path"), [("put", PINS_DIR), ("list", REMOVALS_DIR)])
def test_a_source_that_does_not_answer_is_not_cloned_without_a_pin(
    source: lance_ops.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, path: str
) -> None:
    plain = getattr(LocalStore, operation)

    def unanswered(store: LocalStore, at: str = "", *arguments: Any, **options: Any) -> Any:
        if at.startswith(path):
            raise StoreUnreachable(f"{operation} {at}")
        return plain(store, at, *arguments, **options)

    monkeypatch.setattr(LocalStore, operation, unanswered)
    with pytest.raises(StoreUnreachable):
        shallow_clone(source.snapshot, str(tmp_path / "clone"))
    assert not [*source.snapshot.store.list(PINS_DIR)]


def test_a_clone_holds_external_row_sequences_inline(dataset_uri: str, tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(rows(0, 10), dataset_uri, enable_stable_row_ids=True)
    snapshot = dataset.snapshot
    (fragment,) = snapshot.manifest.fragments
    assert isinstance(fragment.row_ids, bytes)
    snapshot.store.put("data/sequences", b"...." + fragment.row_ids)
    outside = fragment.with_sequences(row_ids=ExternalFile("data/sequences", 4, len(fragment.row_ids)))
    forged = replace(snapshot, manifest=replace(snapshot.manifest, fragments=FragmentList([outside])))
    clone = shallow_clone(forged, str(tmp_path / "clone"))
    assert clone.manifest.fragments[0].row_ids == fragment.row_ids
    validate(clone)


class TestWhatABaseMayBe:
    """A manifest is not trusted: the files that it names must be under its base paths."""

    def test_a_link_out_of_a_base_is_refused(self, source: lance_ops.LanceDataset, tmp_path: Path) -> None:
        clone = source.shallow_clone(tmp_path / "clone", 2)
        path = Path(source.uri) / "data" / source.snapshot.manifest.fragments[0].files[0].path
        path.rename(tmp_path / "outside")
        path.symlink_to(tmp_path / "outside")
        with pytest.raises(UnsafePath, match="out of the root"):
            clone.to_table()

    @pytest.mark.parametrize("path", ["http://169.254.169.254/latest", "ssh://host/x", "github://o:r@m/", "hdfs://h/x"])
    def test_a_server_of_another_protocol_is_not_talked_to(self, path: str, tmp_path: Path) -> None:
        bases = FileLocations(
            LocalStore(str(tmp_path)), [BasePath(1, path, is_dataset_root=True)], {"token": "secret-token"}
        )
        with pytest.raises(UnsupportedFeature, match="base path 1") as caught:
            bases.data_file(1, "x.lance")
        assert "secret-token" not in str(caught.value)

    def test_an_object_store_is_opened_with_the_table_s_options(self, tmp_path: Path) -> None:
        options = {"region": "here", "manifest_store": "sqlite:///rows.db", "allowed_bases": "s3://bucket"}
        bases = FileLocations(LocalStore(str(tmp_path)), [BasePath(1, "s3://bucket/x", is_dataset_root=True)], options)
        place = bases.data_file(1, "f.lance")
        assert place.uri == "s3://bucket/x/data/f.lance"
        assert isinstance(place.store, FsspecStore) and dict(place.store.storage_options) == {"region": "here"}

    def test_only_data_files_lie_in_a_base_that_is_no_dataset(self, tmp_path: Path) -> None:
        bases = FileLocations(LocalStore(str(tmp_path)), [BasePath(1, str(tmp_path / "files"))])
        assert bases.data_file(1, "f.lance").uri == str(tmp_path / "files" / "f.lance")
        with pytest.raises(UnsupportedFeature, match="not the root of a dataset"):
            bases.dataset_root(1, "an index")
        with pytest.raises(CorruptFile, match="under base 2"):
            bases.data_file(2, "f.lance")

    @pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a//b", "a\0b", "file:///etc/passwd"])
    def test_a_path_cannot_leave_the_base(self, path: str, tmp_path: Path) -> None:
        place = FileLocations(LocalStore(str(tmp_path)), [BasePath(1, str(tmp_path / "files"))]).data_file(1, path)
        with pytest.raises(UnsafePath):
            place.store.get(place.path)


@pytest.mark.parametrize("error", [StoreError("no answer"), RuntimeError("no answer")], ids=["store", "other"])
@pytest.mark.parametrize("verb", [deep_clone, shallow_clone])
def test_a_clone_that_cannot_check_for_concurrent_clones_deletes_nothing(
    verb: Any, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = lance_ops.write_dataset(pa.table({"a": range(5)}), str(tmp_path / "source"))

    def fails(*_: object) -> list[int]:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(PutIfAbsentCommitter, "versions", fails)
        with pytest.raises(CommitStateUnknown, match="no answer"):
            verb(source.snapshot, str(tmp_path / "copy"))
    copy = lance_ops.dataset(str(tmp_path / "copy"))
    copy.validate()
    assert copy.to_table() == source.to_table()


def test_a_deep_clone_interrupted_after_its_commit_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = lance_ops.write_dataset(pa.table({"a": range(5)}), str(tmp_path / "source"))
    commit = PutIfAbsentCommitter.commit

    def and_interrupt(self: PutIfAbsentCommitter, version: int, data: bytes, **options: Any) -> object:
        commit(self, version, data, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PutIfAbsentCommitter, "commit", and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            deep_clone(source.snapshot, str(tmp_path / "copy"))
    assert lance_ops.dataset(str(tmp_path / "copy")).to_table() == source.to_table()
