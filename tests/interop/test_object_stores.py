"""One table in an object store, which the reference implementation and we write in turn."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_ops
from tests.s3_server import S3Server
from tests.servers.azure import AzureServer
from tests.servers.gcs import GcsServer

pytestmark = [pytest.mark.interop, pytest.mark.server]


def _table(first: int) -> pa.Table:
    return pa.table(
        {"a": list(range(first, first + 100)), "b": [f"row {index}" for index in range(first, first + 100)]}
    )


@pytest.mark.parametrize("service", ["s3", "azure"])
def test_both_write_one_table_in_turn(service: str, request: pytest.FixtureRequest) -> None:
    import lance

    server: S3Server | AzureServer = request.getfixturevalue(f"{service}_server")
    uri, options = server.new_uri("some/table.lance"), server.storage_options
    lance_ops.write_dataset(_table(0), uri, storage_options=options)
    lance.write_dataset(_table(100), uri, mode="append", storage_options=options)
    lance_ops.dataset(uri, storage_options=options).create_scalar_index("a", "BTREE")
    lance.dataset(uri, storage_options=options).delete("a = 7")
    lance_ops.dataset(uri, storage_options=options).update({"b": "'ours'"}, where="a = 8")
    lance.dataset(uri, storage_options=options).update({"b": "'theirs'"}, where="a = 9")
    lance_ops.dataset(uri, storage_options=options).optimize.compact_files()

    ours, theirs = (library.dataset(uri, storage_options=options) for library in (lance_ops, lance))
    assert ours.version == theirs.version == 8
    table = ours.to_table().sort_by("a")
    assert table == theirs.to_table().sort_by("a")
    assert table.column("a").to_pylist() == [index for index in range(200) if index != 7]
    assert table.column("b").to_pylist()[7:9] == ["ours", "theirs"]
    for version in range(1, 9):
        ours, theirs = (library.dataset(uri, version, storage_options=options) for library in (lance_ops, lance))
        assert ours.to_table().sort_by("a") == theirs.to_table().sort_by("a")


def test_pylance_reads_what_we_wrote_to_a_google_bucket(gcs_server: GcsServer) -> None:
    import lance

    uri, options = gcs_server.new_uri("some/table.lance"), gcs_server.storage_options
    lance_ops.write_dataset(_table(0), uri, storage_options=options)
    lance_ops.dataset(uri, storage_options=options).delete("a = 7")

    ours, theirs = (library.dataset(uri, storage_options=options) for library in (lance_ops, lance))
    assert ours.version == theirs.version == 2
    assert ours.to_table() == theirs.to_table()
