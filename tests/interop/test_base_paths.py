"""Tables whose files are in several places, some of them on another kind of store."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import DatasetBasePath
from lance_ops.errors import InvalidInput
from tests.s3_server import S3Server

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": range(start, stop)})


def test_files_that_the_reference_put_under_bases_that_we_declared(dataset_uri: str, tmp_path: Path) -> None:
    files, root = str(tmp_path / "files"), str(tmp_path / "root")
    dataset = lance_ops.write_dataset(rows(0, 10), dataset_uri)
    dataset.add_bases([DatasetBasePath(files, "files"), DatasetBasePath(root, is_dataset_root=True)])
    assert dataset.base_paths() == {
        1: DatasetBasePath(files, "files", False, 1),
        2: DatasetBasePath(root, None, True, 2),
    }
    assert set(lance.dataset(dataset_uri).base_paths()) == {1, 2}
    with pytest.raises(InvalidInput, match="must differ"):
        dataset.add_bases([DatasetBasePath(files)])

    for at, base in enumerate((files, root)):
        lance.write_dataset(rows(10 + at * 10, 20 + at * 10), dataset_uri, mode="append", target_bases=[base])
    dataset = lance_ops.dataset(dataset_uri)
    dataset.validate()
    assert dataset.to_table() == lance.dataset(dataset_uri).to_table()
    assert [file.base_id for part in dataset.snapshot.fragments for file in part.files] == [None, 1, 2]
    dataset.delete("id % 2 = 0")
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files()
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert [len(list(Path(place).rglob("*.lance"))) for place in (files, root)] == [1, 1]
    assert lance.dataset(dataset_uri).to_table().column("id").to_pylist() == list(range(1, 30, 2))


@pytest.mark.server
def test_branches_and_clones_of_a_table_in_a_bucket(s3_server: S3Server, tmp_path: Path) -> None:
    options = s3_server.storage_options
    uri, local = f"s3://{s3_server.new_bucket()}/table", str(tmp_path / "clone")
    dataset = lance_ops.write_dataset(rows(0, 10), uri, storage_options=options)
    branch = dataset.create_branch("dev")
    branch.delete("id < 5")
    theirs = lance.dataset(uri, storage_options=options).checkout_version(("dev", None))
    assert theirs.count_rows() == branch.count_rows() == 5
    clone = dataset.shallow_clone(local, ("dev", None))
    assert clone.count_rows() == 5
    assert lance_ops.dataset(local, storage_options=options).to_table() == branch.to_table()
    deep = dataset.deep_clone(f"{uri}-copy", ("dev", 2))
    assert lance.dataset(deep.uri, storage_options=options).to_table() == branch.to_table()
    dataset.cleanup_old_versions(timedelta(0))
    dataset.branches.delete("dev")
    assert not list(dataset.snapshot.store.list("tree")) and dataset.count_rows() == 10
