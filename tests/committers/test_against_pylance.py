"""Versions that pylance commits and we see, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.committers import Committed, PutIfAbsentCommitter
from lance_ops.store import LocalStore, open_store
from lance_ops.store.paths import TEMPORARY_PREFIX
from tests.s3_server import S3Server

pytestmark = pytest.mark.interop
TABLE = pa.table({"a": [1, 2, 3]})


@pytest.mark.parametrize("v2_names", [True, False])
def test_versions_of_pylance_are_seen(dataset_uri: str, v2_names: bool) -> None:
    import lance

    for mode in ("create", *["append"] * 11):
        dataset = lance.write_dataset(TABLE, dataset_uri, mode=mode, enable_v2_manifest_paths=v2_names)
    committer = PutIfAbsentCommitter(LocalStore(dataset_uri))

    assert committer.latest() == dataset.version == 12
    assert committer.versions() == [version["version"] for version in dataset.versions()]
    assert committer.location(12).endswith("18446744073709551603.manifest" if v2_names else "_versions/12.manifest")


@pytest.mark.parametrize("v2_names", [True, False])
def test_pylance_sees_our_commit_and_goes_on_after_it(dataset_uri: str, v2_names: bool) -> None:
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


def test_pylance_does_not_mind_what_our_crashed_writers_leave(dataset_uri: str) -> None:
    import lance

    lance.write_dataset(TABLE, dataset_uri)
    store = LocalStore(dataset_uri)
    for directory in ("", "_versions/", "data/", "_transactions/"):
        store.put(f"{directory}{TEMPORARY_PREFIX}1", b"half a manifest")

    lance.write_dataset(TABLE, dataset_uri, mode="append")
    dataset = lance.dataset(dataset_uri)

    assert dataset.count_rows() == 6
    assert dataset.version == PutIfAbsentCommitter(store).latest() == 2
    dataset.validate()  # type: ignore[no-untyped-call]


@pytest.mark.server
def test_versions_of_pylance_on_s3_are_seen_with_the_same_storage_options(s3_server: S3Server) -> None:
    import lance

    uri = f"s3://{s3_server.new_bucket()}/tables/a.lance"
    for mode in ("create", "append"):
        lance.write_dataset(TABLE, uri, mode=mode, storage_options=s3_server.storage_options)

    assert PutIfAbsentCommitter(open_store(uri, s3_server.storage_options)).versions() == [1, 2]


@pytest.mark.parametrize("hint", ['{"version":29}', '{"version":1', '{"version":2}}', '{"version":', ""])
def test_pylance_does_not_mind_a_hint_that_it_reads_while_it_is_being_written(dataset_uri: str, hint: str) -> None:
    import lance

    committer = PutIfAbsentCommitter(LocalStore(dataset_uri))
    for mode in ("create", "append"):
        lance.write_dataset(TABLE, dataset_uri, mode=mode)
    Path(dataset_uri, "_versions/latest_version_hint.json").write_text(hint)

    assert lance.dataset(dataset_uri).version == 2
    assert lance.write_dataset(TABLE, dataset_uri, mode="append").version == committer.latest() == 3
