"""`drop` removes a whole dataset and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import lance_ops
from lance_ops import LanceDataset
from lance_ops.errors import DatasetNotFound, InvalidInput, UnsafePath
from lance_ops.store.paths import TEMPORARY_PREFIX
from tests.interop.two_libraries import rows

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

BOTH = [pytest.param(lance_ops.LanceDataset, id="ours"), pytest.param(lance.LanceDataset, id="theirs")]


@pytest.mark.parametrize("library", BOTH)
def test_dropping_a_dataset_removes_its_branches_and_all_files_under_its_root(library: Any, tmp_path: Path) -> None:
    beside = lance_ops.write_dataset(rows(0, 3), tmp_path / "beside")
    dataset = lance_ops.write_dataset(rows(0, 10), tmp_path / "table")
    dataset.tags.create("first", 1)
    dataset.create_branch("dev").delete("id < 5")
    dataset.create_scalar_index("id", "BTREE")
    Path(dataset.uri, "notes.txt").write_text("of no version")
    Path(dataset.uri, "data", f"{TEMPORARY_PREFIX}abc").write_bytes(b"left by a crash")
    library.drop(dataset.uri)
    assert [path.name for path in tmp_path.iterdir()] == ["beside"] and beside.count_rows() == 3
    assert lance_ops.write_dataset(rows(0, 2), dataset.uri).version == 1


@pytest.mark.parametrize("library", BOTH)
def test_dropping_a_missing_dataset_raises_unless_ignored(library: Any, tmp_path: Path) -> None:
    for ignoring in (None, False):
        with pytest.raises(FileNotFoundError if library is LanceDataset else OSError, match=r"(?i)no.*found|no Lance"):
            library.drop(str(tmp_path / "absent"), ignore_not_found=ignoring)
    library.drop(str(tmp_path / "absent"), ignore_not_found=True)


@pytest.mark.parametrize("library", BOTH)
@pytest.mark.parametrize("ignoring", [None, True])
@pytest.mark.parametrize("content", ["notes.txt", "data/0.lance", "_versions/1.manifest", "table/data/0.lance"])
def test_dropping_a_folder_without_a_dataset_is_refused(
    library: Any, ignoring: bool | None, content: str, tmp_path: Path
) -> None:
    path = tmp_path / content
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"of somebody else")
    with pytest.raises(ValueError, match=r"(?i)no dataset|not a dataset"):
        library.drop(str(tmp_path), ignore_not_found=ignoring)
    assert path.exists()


def test_dropping_a_folder_that_contains_datasets_is_refused(tmp_path: Path) -> None:
    lance.write_dataset(rows(0, 10), str(tmp_path / "table"))
    for library in (lance_ops, lance):
        with pytest.raises(ValueError, match=r"(?i)no dataset|not a dataset"):
            library.LanceDataset.drop(str(tmp_path))
    assert lance_ops.dataset(tmp_path / "table").count_rows() == 10


def test_dropping_a_dataset_with_a_link_to_the_outside_removes_nothing(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("mine")
    dataset = lance_ops.write_dataset(rows(0, 10), tmp_path / "table")
    for name, target in (("folder", outside), ("data/file", outside / "keep")):
        link = Path(dataset.uri, name)
        link.symlink_to(target)
        with pytest.raises(UnsafePath, match="leads out"):
            LanceDataset.drop(dataset.uri)
        assert lance_ops.dataset(dataset.uri).to_table().num_rows == 10
        link.unlink()
    Path(dataset.uri, "inside").symlink_to(Path(dataset.uri, "data"))
    LanceDataset.drop(dataset.uri)
    assert not Path(dataset.uri).exists() and (outside / "keep").read_text() == "mine"


def test_dropping_a_branch_or_an_unsafe_path_is_refused(tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(rows(0, 10), tmp_path / "table")
    branch = dataset.create_branch("dev")
    with pytest.raises(InvalidInput, match=r"branches\.delete"):
        LanceDataset.drop(branch.uri)
    assert branch.count_rows() == 10
    with pytest.raises(DatasetNotFound):
        LanceDataset.drop(tmp_path / "table" / "data" / "x")
    with pytest.raises(UnsafePath, match="NUL"):
        LanceDataset.drop(f"{dataset.uri}\0")
    LanceDataset.drop(f"{branch.uri}/../../../table")
    assert not Path(dataset.uri).exists()


def test_dropping_a_dataset_keeps_files_under_base_paths(tmp_path: Path) -> None:
    base = lance_ops.DatasetBasePath(str(tmp_path / "files"), "files")
    lance_ops.write_dataset(rows(0, 10), tmp_path / "table", initial_bases=[base], target_bases=["files"])
    LanceDataset.drop(tmp_path / "table")
    assert len(list((tmp_path / "files").iterdir())) == 1


def test_a_dataset_whose_newest_manifest_is_torn_is_dropped(tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(rows(0, 10), tmp_path / "table")
    manifest = next(Path(dataset.uri, "_versions").glob("*.manifest"))
    copy = tmp_path / "copy"
    shutil.copytree(dataset.uri, copy)
    newest = copy / "_versions" / f"{2**64 - 1 - 2:020}.manifest"
    newest.write_bytes(manifest.read_bytes()[:-20])
    LanceDataset.drop(copy)
    assert not copy.exists()
