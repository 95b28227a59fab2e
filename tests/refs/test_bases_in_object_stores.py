"""Tables in S3 whose manifests name other buckets and local paths: what is followed, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceDataset
from lance_ops.errors import UnsafePath
from lance_ops.snapshot import Snapshot
from lance_ops.table import BasePath, encode_manifest
from tests.s3_server import S3Server

pytestmark = pytest.mark.server

ROWS = pa.table({"id": list(range(10))})

READS = {
    "scan": lambda table: table.to_table(),
    "take": lambda table: table.take([0]),
    "compact": lambda table: table.optimize.compact_files(num_threads=1),
    "deep clone": lambda table: table.deep_clone(f"{table.uri}-copy", table.version),
    "delete": lambda table: table.delete("id = 1"),
}


def with_base(table: LanceDataset, base: str, file_name: str | None = None) -> LanceDataset:
    """Return the table with the data file of its first fragment moved to a base path, as a hostile manifest may say."""
    snapshot: Snapshot = table.snapshot
    fragment = snapshot.fragments[0]
    file = replace(fragment.files[0], base_id=1)
    if file_name is not None:
        file = replace(file, path=file_name, file_size_bytes=0)
    manifest = replace(
        snapshot.manifest,
        base_paths=(BasePath(1, base),),
        fragments=snapshot.manifest.fragments.with_changes({fragment.id: replace(fragment, files=(file,))}),
    )
    path = snapshot.committer.location(snapshot.version)
    snapshot.store.put(path, encode_manifest(manifest, b""))
    return lance_ops.dataset(table.uri, storage_options=dict(snapshot.storage_options))


@pytest.mark.parametrize("verb", list(READS))
def test_a_remote_table_that_names_a_local_path_is_not_followed(s3_server: S3Server, tmp_path: Path, verb: str) -> None:
    (tmp_path / "id_rsa").write_text("private")
    made = lance_ops.write_dataset(ROWS, s3_server.new_uri("t"), storage_options=s3_server.storage_options)
    made.insert(ROWS)
    hostile = with_base(made, str(tmp_path), "id_rsa")
    with pytest.raises(UnsafePath, match="local path"):
        READS[verb](hostile)
    objects = [made.snapshot.store.get(each.path).to_pybytes() for each in made.snapshot.store.list()]
    assert not [data for data in objects if b"private" in data]


@pytest.mark.parametrize("verb", list(READS))
def test_another_bucket_is_followed_only_if_the_user_allows_it(s3_server: S3Server, verb: str) -> None:
    options = s3_server.storage_options
    other = lance_ops.write_dataset(ROWS, s3_server.new_uri("other"), storage_options=options)
    made = lance_ops.write_dataset(ROWS, s3_server.new_uri("t"), storage_options=options)
    made.insert(ROWS)
    file_name = other.snapshot.fragments[0].files[0].path
    hostile = with_base(made, f"{other.uri}/data", file_name)
    with pytest.raises(UnsafePath, match="allowed_bases"):
        READS[verb](hostile)
    assert hostile.latest_version == made.version
    trusted = lance_ops.dataset(made.uri, storage_options=options | {"allowed_bases": other.uri})
    READS[verb](trusted)
    assert trusted.to_table().num_rows == (18 if verb == "delete" else 20)


def test_a_clone_into_another_bucket_is_read_by_its_maker_and_by_whoever_allows_the_source(
    s3_server: S3Server,
) -> None:
    options = s3_server.storage_options
    source = lance_ops.write_dataset(ROWS, s3_server.new_uri("source"), storage_options=options)
    clone = source.shallow_clone(s3_server.new_uri("clone"), source.version, options)
    assert clone.to_table() == ROWS
    with pytest.raises(UnsafePath, match="allowed_bases"):
        lance_ops.dataset(clone.uri, storage_options=options).to_table()
    allowed = options | {"allowed_bases": source.uri}
    assert lance_ops.dataset(clone.uri, storage_options=allowed).to_table() == ROWS
    same_bucket = source.shallow_clone(f"{source.uri}-clone", source.version, options)
    assert lance_ops.dataset(same_bucket.uri, storage_options=options).to_table() == ROWS
