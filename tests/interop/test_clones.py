"""Clones made by one library; the other reads, changes and clones them again."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput
from tests.interop.two_libraries import LIBRARIES, ids_read_by_both, rows, thinned

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def ids(uri: str) -> list[int]:
    return ids_read_by_both(lance_ops.dataset(uri), lance.dataset(uri))


@pytest.fixture
def source(tmp_path: Path, library: Any) -> Any:
    dataset = thinned(library, str(tmp_path / "source"))
    dataset.create_scalar_index("id", "BTREE")
    dataset.tags.create("t", 3)
    return dataset


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_a_shallow_clone_shares_files_and_changes_independently(
    source: Any, library: Any, other: Any, tmp_path: Path
) -> None:
    uri = str(tmp_path / "clone")
    clone = source.shallow_clone(uri, "t")
    assert clone.version == 3 and ids(uri) == list(range(5, 100))
    assert not (tmp_path / "clone" / "data").exists()
    manifest = lance_ops.dataset(uri).snapshot.manifest
    assert [(base.id, base.path, base.is_dataset_root) for base in manifest.base_paths] == [(0, source.uri, True)]
    assert manifest.reader_feature_flags == manifest.writer_feature_flags == 1 | 16
    assert {index.base_id for index in manifest.indices} == {0}
    assert "ScalarIndexQuery" in lance_ops.dataset(uri).scanner(filter="id = 50").explain_plan()

    other.write_dataset(rows(100, 110), uri, mode="append")
    other.dataset(uri).delete("id < 10")
    assert ids(uri) == list(range(10, 110))
    library.dataset(uri).delete("id = 60")
    lance_ops.dataset(uri).optimize.compact_files()  # the reference's would look for its new index in the source
    assert ids(uri) == [i for i in range(10, 110) if i != 60]
    files = [file for fragment in lance_ops.dataset(uri).snapshot.fragments for file in fragment.files]
    assert {file.base_id for file in files} == {None}
    assert {index.base_id for index in lance_ops.dataset(uri).snapshot.manifest.indices} == {None}
    assert ids(source.uri) == list(range(5, 100))


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_a_clone_of_a_clone_reads_the_files_of_both(source: Any, library: Any, other: Any, tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    source.shallow_clone(first, 3)
    library.write_dataset(rows(100, 120), first, mode="append")
    other.dataset(first).shallow_clone(second, 4)
    assert ids(second) == list(range(5, 120))
    bases = {base.id: base.path for base in lance_ops.dataset(second).snapshot.manifest.base_paths}
    assert bases == {0: source.uri, 1: first}


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_a_deep_clone_is_readable_without_its_source(source: Any, library: Any, other: Any, tmp_path: Path) -> None:
    shallow, deep = str(tmp_path / "shallow"), str(tmp_path / "deep")
    source.shallow_clone(shallow, 3)
    library.write_dataset(rows(100, 120), shallow, mode="append")
    assert library.dataset(shallow).deep_clone(deep, 4).version == 4
    for name in ("source", "shallow"):
        (tmp_path / name).rename(tmp_path / f"{name}-gone")
    assert ids(deep) == list(range(5, 120))
    other.dataset(deep).optimize.compact_files()
    assert ids(deep) == list(range(5, 120))
    assert lance_ops.dataset(deep).snapshot.manifest.base_paths == ()


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_a_clone_keeps_sidecar_blobs_and_stable_row_ids(library: Any, other: Any, tmp_path: Path) -> None:
    uri, shallow, deep = (str(tmp_path / name) for name in ("source", "shallow", "deep"))
    values = [b"a" * 10, b"b" * 100_000, None, b"c" * 5_000_000]
    table = pa.table(
        [range(4), lance.blob_array(values)], schema=pa.schema([("id", pa.int64()), lance.blob_field("b")])
    )
    library.write_dataset(table, uri, enable_stable_row_ids=True)
    library.dataset(uri).delete("id = 0")
    library.dataset(uri).shallow_clone(shallow, 2)
    library.dataset(uri).deep_clone(deep, 2)
    for copy in (shallow, deep):
        for reader in (library, other):
            blobs = reader.dataset(copy).take_blobs("b", indices=[0, 2])
            assert [blob.read() for blob in blobs] == [values[1], values[3]]
            found = reader.dataset(copy).to_table(columns=["id"], with_row_id=True)
            assert found.column("_rowid").to_pylist() == [1, 2, 3]


def test_a_clone_is_committed_as_an_operation(dataset_uri: str, tmp_path: Path) -> None:
    lance_ops.write_dataset(rows(0, 10), dataset_uri)
    lance_ops.dataset(dataset_uri).delete("id < 3")
    lance_ops.dataset(dataset_uri).create_branch("dev").delete("id < 5")
    for version, branch, left in ((1, None, 10), (2, None, 7), (3, "dev", 5)):
        for library, reader in ((lance_ops, lance), (lance, lance_ops)):
            place = str(tmp_path / f"{library.__name__}{version}")
            source = lance_ops.dataset(dataset_uri).checkout_version((branch, version))
            clone = library.LanceOperation.Clone(True, branch, version, source.uri, None)
            made = library.LanceDataset.commit(place, clone, read_version=version)
            assert made.version == version and made.count_rows() == reader.dataset(place).count_rows() == left
            with pytest.raises(Exception, match=r"(?i)already|not enter"):
                library.LanceDataset.commit(place, clone, read_version=version)
    for library in (lance_ops, lance):
        place = str(tmp_path / f"deep {library.__name__}")
        deep, shallow = (library.LanceOperation.Clone(kind, None, 1, dataset_uri, None) for kind in (False, True))
        with pytest.raises((ValueError, OSError), match="deep_clone"):
            library.LanceDataset.commit(place, deep, read_version=1)
        with pytest.raises(ValueError, match="read_version"):
            library.LanceDataset.commit(place, shallow)
        assert not Path(place).exists()
    with pytest.raises(InvalidInput, match="create_branch"):
        lance_ops.LanceDataset.commit(place, lance_ops.LanceOperation.Clone(True, None, 1, dataset_uri, "dev"), 1)


@pytest.mark.parametrize("library", [lance_ops, lance])
def test_clean_up_of_a_clone_may_remove_the_version_a_branch_started_from(
    source: Any, library: Any, tmp_path: Path
) -> None:
    """The reference keeps a version only for files that the branch names in the clone; here there are none."""
    uri = str(tmp_path / "clone")
    library.dataset(source.uri).shallow_clone(uri, "t").create_branch("b", (None, 3))
    library.write_dataset(rows(100, 110), uri, mode="append")
    library.dataset(uri).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    kept = [version["version"] for version in library.dataset(uri).versions()]
    assert kept == ([3, 4] if library is lance_ops else [4])
    branch = ("b", None)
    assert ids_read_by_both(
        lance_ops.dataset(uri).checkout_version(branch), lance.dataset(uri).checkout_version(branch)
    ) == list(range(5, 100))
