"""We find the versions that pylance commits, and pylance finds ours."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers import Committed, PutIfAbsentCommitter
from lance_ops.committers.version_hint import VERSION_HINT_PATH
from lance_ops.core.file_names import ManifestNaming, manifest_name
from lance_ops.errors import UnsupportedFeature
from lance_ops.store import FaultyStore, LocalStore, open_store
from lance_ops.store.paths import TEMPORARY_PREFIX
from tests.s3_server import S3Server

pytestmark = pytest.mark.interop
TABLE = pa.table({"a": [1, 2, 3]})


@pytest.mark.parametrize("v2_names", [True, False])
def test_versions_of_pylance_are_found(dataset_uri: str, v2_names: bool) -> None:
    import lance

    for mode in ("create", *["append"] * 11):
        dataset = lance.write_dataset(TABLE, dataset_uri, mode=mode, enable_v2_manifest_paths=v2_names)
    committer = PutIfAbsentCommitter(LocalStore(dataset_uri))

    assert committer.latest() == dataset.version == 12
    assert committer.versions() == [version["version"] for version in dataset.versions()]
    assert committer.location(12).endswith("18446744073709551603.manifest" if v2_names else "_versions/12.manifest")


@pytest.mark.parametrize("v2_names", [True, False])
def test_pylance_finds_our_commit_and_commits_after_it(dataset_uri: str, v2_names: bool) -> None:
    import lance

    lance.write_dataset(TABLE, dataset_uri, enable_v2_manifest_paths=v2_names)
    committer = PutIfAbsentCommitter(LocalStore(dataset_uri))
    # The bytes say version 1, which is all that this room knows how to write; the name is what counts for finding it.
    assert isinstance(committer.commit(2, committer.read(1).to_pybytes()), Committed)
    assert Path(dataset_uri, committer.location(2)).exists()
    assert lance.dataset(dataset_uri).count_rows() == 3

    Path(dataset_uri, committer.location(2)).unlink()
    lance.write_dataset(TABLE, dataset_uri, mode="append")
    assert committer.latest() == 2


@pytest.mark.parametrize("v2_names", [True, False])
def test_a_new_table_has_the_names_that_are_asked_for_and_keeps_them(dataset_uri: str, v2_names: bool) -> None:
    import lance

    lance_ops.write_dataset(TABLE, dataset_uri, enable_v2_manifest_paths=v2_names)
    lance.write_dataset(TABLE, dataset_uri, mode="append")
    lance_ops.write_dataset(TABLE, dataset_uri, mode="append", enable_v2_manifest_paths=not v2_names)
    names = {path.name for path in Path(dataset_uri, "_versions").glob("*.manifest")}
    assert names == {manifest_name(v, ManifestNaming.V2 if v2_names else ManifestNaming.V1) for v in (1, 2, 3)}
    assert lance.dataset(dataset_uri).version == lance_ops.dataset(dataset_uri).version == 3
    branch = lance_ops.dataset(dataset_uri).create_branch("dev")
    assert lance.dataset(dataset_uri).checkout_version(("dev", None)).count_rows() == branch.count_rows() == 9


def test_a_manifest_store_refuses_v1_names(dataset_uri: str, tmp_path: Path) -> None:
    options = {"manifest_store": f"sqlite:///{tmp_path}/rows.sqlite"}
    with pytest.raises(UnsupportedFeature, match="old names"):
        lance_ops.write_dataset(TABLE, dataset_uri, enable_v2_manifest_paths=False, storage_options=options)


def test_pylance_ignores_the_files_of_our_crashed_writers(dataset_uri: str) -> None:
    import lance

    lance.write_dataset(TABLE, dataset_uri)
    store = LocalStore(dataset_uri)
    for directory in ("", "_versions/", "data/", "_transactions/"):
        store.put(f"{directory}{TEMPORARY_PREFIX}1", b"half a manifest")

    lance.write_dataset(TABLE, dataset_uri, mode="append")
    dataset = lance.dataset(dataset_uri)

    assert dataset.count_rows() == 6
    assert dataset.version == PutIfAbsentCommitter(store).latest() == 2
    dataset.validate()  # type: ignore[no-untyped-call]  # pylance says no types


@pytest.mark.server
def test_versions_of_pylance_on_s3_are_found_with_the_same_storage_options(s3_server: S3Server) -> None:
    import lance

    uri = f"s3://{s3_server.new_bucket()}/tables/a.lance"
    for mode in ("create", "append"):
        lance.write_dataset(TABLE, uri, mode=mode, storage_options=s3_server.storage_options)

    assert PutIfAbsentCommitter(open_store(uri, s3_server.storage_options)).versions() == [1, 2]


@pytest.mark.parametrize("hint", ['{"version":29}', '{"version":1', '{"version":2}}', '{"version":', ""])
def test_pylance_ignores_a_half_written_hint(dataset_uri: str, hint: str) -> None:
    import lance

    committer = PutIfAbsentCommitter(LocalStore(dataset_uri))
    for mode in ("create", "append"):
        lance.write_dataset(TABLE, dataset_uri, mode=mode)
    Path(dataset_uri, "_versions/latest_version_hint.json").write_text(hint)

    assert lance.dataset(dataset_uri).version == 2
    assert lance.write_dataset(TABLE, dataset_uri, mode="append").version == committer.latest() == 3


def test_pylance_reads_our_hint_and_we_list_after_its_commit(dataset_uri: str) -> None:
    import lance

    hint = Path(dataset_uri, VERSION_HINT_PATH)
    lance.write_dataset(TABLE, dataset_uri)
    for version in (2, 4, 6):
        assert lance_ops.write_dataset(TABLE, dataset_uri, mode="append").version == version
        assert b"seal" in hint.read_bytes()
        assert _listings_of_opening(dataset_uri, version) == 0
        assert lance.dataset(dataset_uri).version == version
        assert _listings_of_opening(dataset_uri, version) == 0

        assert lance.write_dataset(TABLE, dataset_uri, mode="append").version == version + 1
        assert _listings_of_opening(dataset_uri, version + 1) == 1


def test_after_a_clean_up_of_either_library_the_versions_are_listed(dataset_uri: str) -> None:
    import lance

    for mode in ("create", *["append"] * 5):
        dataset = lance_ops.write_dataset(TABLE, dataset_uri, mode=mode)
    dataset.tags.create("kept", 2)
    assert _listings_of_opening(dataset_uri, 6) == 0
    dataset.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    assert PutIfAbsentCommitter(LocalStore(dataset_uri)).versions() == [2, 6]
    assert _listings_of_opening(dataset_uri, 6) == 1

    for version in (7, 8, 9):
        assert lance_ops.write_dataset(TABLE, dataset_uri, mode="append").version == version
    assert _listings_of_opening(dataset_uri, 9) == 0
    stale = Path(dataset_uri, VERSION_HINT_PATH).read_bytes()
    lance.write_dataset(TABLE, dataset_uri, mode="append")
    lance.write_dataset(TABLE, dataset_uri, mode="append")
    lance.dataset(dataset_uri).tags.create("nine", 9)
    lance.dataset(dataset_uri).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    Path(dataset_uri, VERSION_HINT_PATH).write_bytes(stale)  # as if its writer had been slow
    assert PutIfAbsentCommitter(LocalStore(dataset_uri)).versions() == [2, 9, 11]
    assert _listings_of_opening(dataset_uri, 11) == 1


def test_a_branch_has_a_hint_of_its_own(dataset_uri: str) -> None:
    import lance

    lance_ops.write_dataset(TABLE, dataset_uri)
    dataset = lance_ops.write_dataset(TABLE, dataset_uri, mode="append")
    branch = dataset.create_branch("dev")
    branch.insert(TABLE)
    assert _listings_of_opening(dataset_uri, 2) == 0
    assert _listings_of_opening(f"{dataset_uri}/tree/dev", 3) == 0
    assert lance.dataset(dataset_uri).checkout_version(("dev", None)).version == 3


def _listings_of_opening(uri: str, newest: int) -> int:
    store = FaultyStore(LocalStore(uri))
    assert PutIfAbsentCommitter(store).latest() == newest == lance_ops.dataset(uri).version
    return [call.operation for call in store.calls].count("list_names")
