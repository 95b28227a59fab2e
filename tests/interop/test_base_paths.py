"""Tables whose files are in several places, some of them on another kind of store."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import DatasetBasePath
from lance_ops.errors import InvalidInput
from lance_ops.fragment import write_fragments
from tests.interop.two_libraries import LIBRARIES, ids_read_by_both, rows
from tests.s3_server import S3Server

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def test_files_that_the_reference_wrote_under_our_bases_are_read(dataset_uri: str, tmp_path: Path) -> None:
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


def places(uri: str) -> list[int | None]:
    """The base of each data file, in the order of the rows."""
    fragments = lance_ops.dataset(uri).snapshot.fragments
    return [file.base_id for fragment in fragments for file in fragment.files]


def ids(uri: str) -> list[int]:
    return ids_read_by_both(lance_ops.dataset(uri), lance.dataset(uri))


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_fragments_are_written_to_the_named_bases_in_turn(
    library: Any, other: Any, dataset_uri: str, tmp_path: Path
) -> None:
    files, root, more = (str(tmp_path / name) for name in ("files", "root", "more"))
    bases = [("files", files, False), ("root", root, True), (None, more, False)]
    library.write_dataset(
        rows(0, 60),
        dataset_uri,
        max_rows_per_file=10,
        initial_bases=[library.DatasetBasePath(path, name, is_root) for name, path, is_root in bases],
        target_bases=["root", more, "files"],
    )
    assert ids(dataset_uri) == list(range(60)) and places(dataset_uri) == [2, 3, 1, 2, 3, 1]
    assert {base.id: (base.name, base.path) for base in other.dataset(dataset_uri).base_paths().values()} == {
        1: ("files", files),
        2: ("root", root),
        3: (None, more),
    }
    found = [len(list(Path(place).glob("*.lance"))) for place in (files, f"{root}/data", more)]
    assert found == [2, 2, 2] and not Path(dataset_uri, "data").exists()
    transaction = lance_ops.dataset(dataset_uri).read_transaction(1)
    assert transaction is not None and isinstance(transaction.operation, lance_ops.LanceOperation.Overwrite)
    assert set(transaction.operation.initial_bases or ()) == set(lance_ops.dataset(dataset_uri).base_paths().values())

    other.write_dataset(rows(60, 100), dataset_uri, mode="append", max_rows_per_file=10, target_all_bases=True)
    assert places(dataset_uri)[6:] == [None, 1, 2, 3]
    other.dataset(dataset_uri).insert(rows(100, 120), max_rows_per_file=10, target_all_bases=False)
    assert places(dataset_uri)[10:] == [1, 2]
    library.dataset(dataset_uri).delete("id % 10 = 0")
    other.dataset(dataset_uri).create_scalar_index("id", "BTREE")
    assert ids(dataset_uri) == [number for number in range(120) if number % 10]
    other.dataset(dataset_uri).update({"s": "'new'"}, "id < 5")
    assert set(places(dataset_uri)) == {None, 1, 2, 3}
    library.dataset(dataset_uri).optimize.compact_files()
    assert set(places(dataset_uri)) == {None}
    library.write_dataset(rows(0, 60), dataset_uri, mode="overwrite", target_bases=["files"])
    assert places(dataset_uri) == [1] and ids(dataset_uri) == list(range(60))
    lance_ops.dataset(dataset_uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert ids(dataset_uri) == list(range(60))


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_clones_and_branches_read_the_bases_of_their_source(
    library: Any, other: Any, dataset_uri: str, tmp_path: Path
) -> None:
    files, clone, deep = (str(tmp_path / name) for name in ("files", "clone", "deep"))
    base = library.DatasetBasePath(files, "files")
    library.write_dataset(rows(0, 60), dataset_uri, initial_bases=[base], target_bases=["files"])
    library.write_dataset(rows(60, 70), dataset_uri, mode="append")
    library.dataset(dataset_uri).shallow_clone(clone, 2)
    assert places(clone) == [1, 0] and ids(clone) == list(range(70))
    other.write_dataset(rows(70, 80), clone, mode="append", target_bases=["files"])
    assert places(clone) == [1, 0, 1] and ids(clone) == list(range(80))
    branch = other.dataset(dataset_uri).create_branch("dev")
    library.write_dataset(rows(70, 80), branch.uri, mode="append", target_bases=["files"])
    assert ids(branch.uri) == list(range(80))
    lance_ops.dataset(clone).deep_clone(deep, 3)  # the reference looks for files of the base in its `data`
    assert places(deep) == [None] * 3 and ids(deep) == list(range(80))
    for uri in (clone, branch.uri):
        cleaned = lance_ops.write_dataset(rows(0, 1), uri, mode="overwrite")
        cleaned.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert ids(dataset_uri) == list(range(70))


def test_blobs_are_stored_beside_their_data_file(dataset_uri: str, tmp_path: Path) -> None:
    files = tmp_path / "files"
    values = [b"a" * 10, b"b" * 100_000, None, b"c" * 5_000_000]
    table = pa.table(
        [range(4), lance.blob_array(values)], schema=pa.schema([("id", pa.int64()), lance.blob_field("b")])
    )
    bases = [DatasetBasePath(str(files), "files")]
    lance_ops.write_dataset(table, dataset_uri, initial_bases=bases, target_bases=["files"])
    assert len(list(files.rglob("*.blob"))) == 2
    for reader in (lance_ops, lance):
        blobs = reader.dataset(dataset_uri).take_blobs("b", indices=[0, 1, 3])
        assert [blob.read() for blob in blobs] == [value for value in values if value]


@pytest.mark.server
def test_a_base_in_a_bucket_uses_its_own_storage_options(s3_server: S3Server, dataset_uri: str) -> None:
    place = f"s3://{s3_server.new_bucket()}/files"
    params = {place: dict(s3_server.storage_options)}
    bases = [DatasetBasePath(place, "files")]
    written = lance_ops.write_dataset(
        rows(0, 10), dataset_uri, initial_bases=bases, target_bases=["files"], base_store_params=params
    )
    assert written.count_rows("id < 5") == 5
    secret = s3_server.storage_options["aws_secret_access_key"]
    assert secret not in repr(written) + repr(written.snapshot) + repr(written.snapshot.manifest)
    lance.write_dataset(rows(10, 20), dataset_uri, mode="append", target_bases=["files"], base_store_params=params)
    assert places(dataset_uri) == [1, 1]
    scoped = {f"base_1.{key}": value for key, value in s3_server.storage_options.items()}
    for opened in (
        lance_ops.dataset(dataset_uri, base_store_params=params),
        lance_ops.dataset(dataset_uri, storage_options=scoped | {"allowed_bases": place}),
        lance.dataset(dataset_uri, storage_options=scoped),
    ):
        assert opened.to_table().column("id").to_pylist() == list(range(20))


@pytest.mark.server
def test_branches_and_clones_of_a_table_in_a_bucket_are_read_by_both(s3_server: S3Server, tmp_path: Path) -> None:
    options = s3_server.storage_options
    uri, local = f"s3://{s3_server.new_bucket()}/table", str(tmp_path / "clone")
    dataset = lance_ops.write_dataset(rows(0, 10), uri, storage_options=options)
    branch = dataset.create_branch("dev")
    branch.delete("id < 5")
    theirs = lance.dataset(uri, storage_options=options).checkout_version(("dev", None))
    assert theirs.count_rows() == branch.count_rows() == 5
    clone = dataset.shallow_clone(local, ("dev", None))
    assert clone.count_rows() == 5
    allowed = options | {"allowed_bases": uri}
    assert lance_ops.dataset(local, storage_options=allowed).to_table() == branch.to_table()
    deep = dataset.deep_clone(f"{uri}-copy", ("dev", 2))
    assert lance.dataset(deep.uri, storage_options=options).to_table() == branch.to_table()
    dataset.cleanup_old_versions(timedelta(0))
    dataset.branches.delete("dev")
    assert not list(dataset.snapshot.store.list("tree")) and dataset.count_rows() == 10


@pytest.mark.parametrize(("library", "other"), LIBRARIES)
def test_a_merge_writes_new_fragments_to_its_target_bases(
    library: Any, other: Any, dataset_uri: str, tmp_path: Path
) -> None:
    bases = [library.DatasetBasePath(str(tmp_path / name), name) for name in ("a", "b")]
    library.write_dataset(rows(0, 10), dataset_uri, initial_bases=bases)

    def upsert(made_by: Any, keys: range) -> Any:
        builder = made_by.dataset(dataset_uri).merge_insert("id")
        return builder.when_matched_update_all().when_not_matched_insert_all(), rows(keys.start, keys.stop)

    places_so_far: list[int | None] = [None]
    steps: list[tuple[Any, Callable[[Any], Any], int | None]] = [
        (library, lambda b: b.target_bases(["a"]), 1),
        (other, lambda b: b.target_bases([str(tmp_path / "b")]), 2),
        (library, lambda b: b.target_bases(["a"]).target_bases(["b"]), 2),
        (library, lambda b: b.target_bases([dataset_uri, "a"]), None),
        (other, lambda b: b.target_all_bases(), None),
        (library, lambda b: b.target_all_bases(True).target_all_bases(False), 1),
    ]
    for start, (made_by, choose, place) in enumerate(steps):
        builder, source = upsert(made_by, range(5 + 10 * start, 15 + 10 * start))
        choose(builder).execute(source)
        places_so_far.append(place)
        assert places(dataset_uri) == places_so_far
    assert ids(dataset_uri) == list(range(65))
    refused: list[Callable[[Any], Any]] = [
        lambda b: b.target_bases(["nowhere"]),
        lambda b: b.target_bases([]),
        lambda b: b.target_bases(["a"]).target_all_bases(),
    ]
    for made_by in (library, other):
        for choose in refused:
            builder, source = upsert(made_by, range(5))
            with pytest.raises((ValueError, OSError)):
                choose(builder).execute(source)
    assert places(dataset_uri) == places_so_far
    written = [len(list((tmp_path / name).iterdir())) for name in ("a", "b")]
    assert written == [2, 2]

    builder, source = upsert(lance_ops, range(5))
    builder.target_bases(["a"]).analyze_plan(source)
    assert [len(list((tmp_path / name).iterdir())) for name in ("a", "b")] == written
    builder, source = upsert(library, range(60, 70))
    transaction, _ = builder.target_bases(["b"]).execute_uncommitted(source)
    library.LanceDataset.commit(dataset_uri, transaction)
    assert places(dataset_uri)[-1] == 2 and ids(dataset_uri) == list(range(70))


@pytest.mark.server
def test_commits_accept_storage_options_of_bases(s3_server: S3Server, dataset_uri: str) -> None:
    place = f"s3://{s3_server.new_bucket()}/files"
    params = {place: dict(s3_server.storage_options)}
    written = write_fragments(
        rows(0, 10),
        dataset_uri,
        initial_bases=[DatasetBasePath(place, "files")],
        target_bases=["files"],
        base_store_params=params,
    )
    assert isinstance(written, list)
    creation = lance_ops.LanceOperation.Overwrite(rows(0, 1).schema, written, [DatasetBasePath(place, "files")])
    made = lance_ops.LanceDataset.commit(dataset_uri, creation, base_store_params=params)
    assert made.count_rows("id < 5") == 5
    more = write_fragments(
        rows(10, 20), made, target_bases=["files"], base_store_params=params, return_transaction=True
    )
    assert isinstance(more, lance_ops.Transaction)
    result = lance_ops.LanceDataset.commit_batch(dataset_uri, [more], base_store_params=params)
    dataset = result["dataset"]
    assert isinstance(dataset, lance_ops.LanceDataset) and dataset.count_rows("id >= 5") == 15
    secret = s3_server.storage_options["aws_secret_access_key"]
    assert secret not in repr(result) + repr(more) + repr(dataset.snapshot.manifest) + str(dataset.config())
    with pytest.raises(InvalidInput, match="none of the base paths") as caught:
        lance_ops.LanceDataset.commit_batch(dataset_uri, [more], base_store_params={"s3://other": params[place]})
    assert secret not in str(caught.value)
