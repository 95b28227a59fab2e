"""Detached versions: in no history, opened by their number, by both libraries."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers import PutIfAbsentCommitter, list_detached
from lance_ops.core.file_names import ManifestNaming as Naming
from lance_ops.core.file_names import is_detached, manifest_name, parse_detached_name, parse_manifest_name
from lance_ops.errors import InvalidInput, UnsupportedFeature, VersionNotFound
from lance_ops.store import LocalStore

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

LIBRARIES = [lance_ops, lance]
ROWS = pa.table({"id": range(4)})
NOW: dict[str, Any] = {"older_than": timedelta(0), "error_if_tagged_old_versions": False}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(lance.write_dataset(ROWS, str(tmp_path / "table")).uri)


def append(library: Any, uri: str, read_version: int = 1, **options: Any) -> Any:
    operation = library.LanceOperation.Append([library.LanceFragment.create(uri, ROWS)])
    return library.LanceDataset.commit(uri, operation, read_version=read_version, **options)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_detached_version_is_opened_by_its_number_only(uri: str, library: Any) -> None:
    made = append(library, uri, detached=True, commit_message="aside")
    assert is_detached(made.version) and made.count_rows() == 8
    for reader in LIBRARIES:
        dataset = reader.dataset(uri)
        assert (dataset.version, dataset.latest_version, dataset.count_rows()) == (1, 1, 4)
        assert [each["version"] for each in dataset.versions()] == [1]
        assert dataset.checkout_version(made.version).count_rows() == 8
        opened = reader.dataset(uri, version=made.version)
        assert (opened.version, opened.latest_version, opened.count_rows()) == (made.version, 1, 8)
        transaction = opened.read_transaction(made.version)
        assert transaction.read_version == 1
        assert dict(transaction.transaction_properties) == {"__lance_commit_message": "aside"}
        assert opened.get_version()["version"] == made.version
        assert [each["version"] for each in opened.versions()] == [1]
        assert pickle.loads(pickle.dumps(opened)).to_table().equals(opened.to_table())
        opened.validate()
    names = [path.name for path in (Path(uri) / "_versions").iterdir() if path.name.startswith("d")]
    assert names == [manifest_name(made.version, Naming.V2)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_detached_version_follows_another_and_the_history_goes_on_beside_them(uri: str, library: Any) -> None:
    first = append(library, uri, detached=True)
    second = append(library, uri, first.version, detached=True)
    assert second.count_rows() == 12 and second.version != first.version
    assert append(library, uri).version == 2
    assert library.dataset(uri).count_rows() == 8


def test_a_detached_commit_applies_to_the_version_that_it_was_planned_on(uri: str) -> None:
    lance_ops.dataset(uri).delete("id < 3")
    assert append(lance_ops, uri, 1, detached=True).count_rows() == 8
    assert append(lance_ops, uri, 2, detached=True).count_rows() == 5
    with pytest.raises(VersionNotFound):
        append(lance_ops, uri, 7, detached=True)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_history_does_not_follow_a_detached_version(uri: str, library: Any) -> None:
    made = append(library, uri, detached=True)
    handle = library.dataset(uri, version=made.version)
    files = set(Path(uri).rglob("*"))
    attempts: list[Any] = [
        lambda: handle.delete("id = 1"),
        lambda: handle.update({"id": "7"}),
        lambda: handle.add_columns({"x": "id"}),
    ]
    for attempt in attempts:
        with pytest.raises((ValueError, OSError), match="detached"):
            attempt()
    with pytest.raises((ValueError, OSError), match="detached"):
        append(library, uri, made.version)
    assert library.dataset(uri).latest_version == 1
    if library is lance_ops:
        assert len(set(Path(uri).rglob("*")) - files) == 1  # the caller's own fragment of the last attempt


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_detached_version_is_restored_and_tagged(uri: str, library: Any) -> None:
    made = append(library, uri, detached=True)
    dataset = library.dataset(uri)
    dataset.tags.create("aside", made.version)
    for reader in LIBRARIES:
        assert reader.dataset(uri, version="aside").count_rows() == 8
        assert reader.dataset(uri).tags.list()["aside"]["version"] == made.version
    handle = library.dataset(uri, version=made.version)
    handle.restore()
    for reader in LIBRARIES:
        assert (reader.dataset(uri).version, reader.dataset(uri).count_rows()) == (2, 8)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("delete_unverified", [False, True])
@pytest.mark.parametrize("tagged", [False, True])
def test_clean_up_keeps_detached_versions_with_their_files(
    uri: str, library: Any, delete_unverified: bool, tagged: bool
) -> None:
    made = append(library, uri, detached=True)
    if tagged:
        lance_ops.dataset(uri).tags.create("aside", made.version)
    lance_ops.dataset(uri).delete("id = 1")
    newest = lance_ops.write_dataset(ROWS, uri, mode="overwrite")
    stats = newest.cleanup_old_versions(delete_unverified=delete_unverified, **NOW)
    assert stats.old_versions == 2
    for reader in LIBRARIES:
        assert reader.dataset(uri, version=made.version).to_table().num_rows == 8
        assert reader.dataset(uri).to_table().num_rows == 4
    explained = lance_ops.dataset(uri).cleanup_old_versions(delete_unverified=True, **NOW)
    assert explained.data_files_removed == 0


def test_clean_up_of_the_reference_keeps_the_manifest_and_may_remove_its_files(uri: str) -> None:
    made = append(lance, uri, detached=True)
    newest = lance.write_dataset(ROWS, uri, mode="overwrite")
    newest.cleanup_old_versions(delete_unverified=True, **NOW)
    assert list_detached(LocalStore(uri)) == [made.version]
    with pytest.raises(Exception, match=r"(?i)not found|no object"):
        lance.dataset(uri, version=made.version).to_table()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_detached_commit_needs_a_dataset_with_manifests_of_the_new_names(tmp_path: Path, library: Any) -> None:
    old = library.write_dataset(ROWS, str(tmp_path / "old"), enable_v2_manifest_paths=False).uri
    with pytest.raises((NotImplementedError, OSError), match="(?i)detached"):
        append(library, old, detached=True)
    new = str(tmp_path / "new")
    operation = library.LanceOperation.Overwrite(ROWS.schema, [library.LanceFragment.create(new, ROWS)])
    with pytest.raises((NotImplementedError, OSError), match="(?i)detached"):
        library.LanceDataset.commit(new, operation, detached=True)
    assert not (tmp_path / "new" / "_versions").exists()


def test_a_detached_version_begins_no_branch_and_no_clone(uri: str, tmp_path: Path) -> None:
    dataset = lance_ops.dataset(uri)
    made = append(lance_ops, uri, detached=True)
    attempts: list[Any] = [
        lambda: dataset.create_branch("side", made.version),
        lambda: dataset.shallow_clone(tmp_path / "shallow", made.version),
        lambda: dataset.deep_clone(tmp_path / "deep", made.version),
    ]
    for attempt in attempts:
        with pytest.raises(UnsupportedFeature, match=str(made.version)):
            attempt()
    assert dataset.branches.list() == {}
    assert not (tmp_path / "shallow").exists() and not (tmp_path / "deep").exists()


def test_a_batch_of_appends_is_committed_detached(uri: str) -> None:
    for library in LIBRARIES:
        appends = [library.LanceOperation.Append([library.LanceFragment.create(uri, ROWS)]) for _ in range(2)]
        pending = [library.Transaction(1, operation) for operation in appends]
        made = library.LanceDataset.commit_batch(uri, pending, detached=True)["dataset"]
        assert is_detached(made.version) and made.count_rows() == 12


def test_names_and_numbers_of_detached_versions_are_checked(uri: str) -> None:
    low, high = 1 << 63, (1 << 64) - 1
    for version in (low, high):
        name = manifest_name(version, Naming.V2)
        assert parse_detached_name(name) == version and parse_manifest_name(name) is None
    for name in ("d1.manifest", f"d{1 << 64}.manifest", f"{low}.manifest", "d.manifest", "d", "dx.manifest", f"d{low}"):
        assert parse_detached_name(name) is None
    committer = PutIfAbsentCommitter(LocalStore(uri))
    for wrong in (0, -1, 1 << 64):
        with pytest.raises(InvalidInput):
            committer.location(wrong)
    with pytest.raises(VersionNotFound):
        lance_ops.dataset(uri, version=low)
