"""How often an object store is asked: what a commit and a scan cost, counted by a proxy before a server.

The names of the counts are those of S3's requests; see `request_name`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest

import lance_ops
from tests.lossy_proxy import LossyProxy, lossy_proxy, request_name
from tests.manifest_servers import ManifestServer
from tests.s3_server import S3Server
from tests.store.conftest import ObjectServer

pytestmark = pytest.mark.server

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


class Counted:
    """A table of some fragments, and the requests that doing something to it takes."""

    def __init__(self, uri: str, options: dict[str, str], proxy: LossyProxy) -> None:
        self.uri = uri
        self.options = options
        self._proxy = proxy
        for _ in range(4):
            self.append()

    def append(self) -> None:
        lance_ops.write_dataset(TABLE, self.uri, mode="append", storage_options=self.options)

    def open(self) -> lance_ops.LanceDataset:
        return lance_ops.dataset(self.uri, storage_options=self.options)

    def requests(self, act: Callable[[], object]) -> Counter[str]:
        before = len(self._proxy.seen)
        act()
        return Counter(request_name(method, path) for method, path in self._proxy.seen[before:])


@pytest.fixture
def counted(object_server: ObjectServer) -> Iterator[Counted]:
    with lossy_proxy(object_server.endpoint) as proxy:
        options = replace(object_server, endpoint=proxy.endpoint).storage_options
        yield Counted(object_server.new_uri("table.lance"), options, proxy)


@pytest.fixture
def counted_with_rows(s3_server: S3Server, dynalite: Callable[[], ManifestServer]) -> Iterator[Counted]:
    """A table that DynamoDB has the rows of; requests to its bucket are counted."""
    rows = dynalite()
    uri = f"s3+ddb://{s3_server.new_bucket()}/table.lance?ddbTableName={rows.url.removeprefix('dynamodb://')}"
    with lossy_proxy(s3_server.endpoint) as proxy:
        yield Counted(uri, {**rows.storage_options, "aws_endpoint": proxy.endpoint}, proxy)


def test_opening_takes_a_list_and_a_manifest(counted: Counted) -> None:
    assert counted.requests(counted.open) == {"LIST": 1, "GET": 1}


def test_an_append_writes_three_objects_and_looks_before_and_after_it(counted: Counted) -> None:
    # The file, the transaction and the manifest. Versions are listed to open the table, before the commit and after it;
    # and whether the dataset is still the one that was read, before and after it.
    assert counted.requests(counted.append) == {"LIST": 3, "GET": 1, "PUT": 3, "HEAD": 2}


def test_a_commit_looks_for_the_dataset_beside_its_other_requests(s3_server: S3Server) -> None:
    """Each of the two requests waits at the proxy until the other one is there as well."""
    pair, met = threading.Barrier(2, timeout=120), list[str]()

    def wait_for_the_other(method: str, path: str) -> None:
        is_last_listing = request_name(method, path) == "LIST" and "transaction" in met
        if method == "HEAD" or is_last_listing or (method == "PUT" and "_transactions" in path):
            with suppress(threading.BrokenBarrierError):
                pair.wait()
                met.append("listing" if is_last_listing else "HEAD" if method == "HEAD" else "transaction")

    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        table = Counted(s3_server.new_uri("table.lance"), options, proxy)
        proxy.lose = wait_for_the_other
        table.append()
    assert sorted(met[:2]) == sorted(["HEAD", "transaction"])
    assert sorted(met[2:]) == sorted(["HEAD", "listing"])


def test_a_scan_takes_one_request_a_small_file_and_the_next_scan_none(counted: Counted) -> None:
    dataset = counted.open()
    assert counted.requests(dataset.to_table) == {"GET": 4}
    assert counted.requests(lambda: dataset.to_table(filter="a = 2", columns=["b"])) == {}
    assert counted.requests(lambda: dataset.take([0, 5, 11])) == {}


def test_a_take_from_a_new_handle_asks_once_for_each_small_file_that_holds_rows(counted: Counted) -> None:
    assert counted.requests(lambda: counted.open().take([0, 5, 11])) == {"LIST": 1, "GET": 4}


def test_a_second_table_in_a_bucket_is_written_without_another_proof(counted: Counted) -> None:
    def write() -> None:
        lance_ops.write_dataset(TABLE, counted.uri.replace("table", "other"), storage_options=counted.options)

    # The manifest of the oldest tables is looked for when no version is found: before the write, and before the commit.
    assert counted.requests(write) == {"LIST": 3, "GET": 2, "PUT": 3}


def test_a_delete_reads_each_small_file_once(counted: Counted) -> None:
    # Four deletion files, the transaction and the manifest; and the same looks.
    dataset = counted.open()
    assert counted.requests(lambda: dataset.delete("a = 2")) == {"GET": 4, "LIST": 2, "PUT": 6, "HEAD": 2}


def test_a_delete_that_others_were_faster_than_reads_what_they_made_without_another_look(counted: Counted) -> None:
    dataset = counted.open()
    for _ in range(3):
        counted.append()
    # The four files, three manifests, and whether the one read is still there; else as when nothing had landed.
    assert counted.requests(lambda: dataset.delete("a = 2")) == {"GET": 7, "LIST": 2, "PUT": 6, "HEAD": 3}


def test_a_row_in_a_manifest_store_spares_the_listings(counted_with_rows: Counted) -> None:
    assert counted_with_rows.requests(counted_with_rows.open) == {"GET": 1}
    # What is staged is copied and deleted, and once it is looked whether the version is there without a row.
    assert counted_with_rows.requests(counted_with_rows.append) == {"GET": 2, "PUT": 4, "HEAD": 2, "DELETE": 1}


def test_files_of_one_write_are_sent_side_by_side(s3_server: S3Server) -> None:
    together, met = threading.Barrier(4, timeout=120), list[str]()

    def wait_for_the_others(method: str, path: str) -> None:
        if method == "PUT" and "/data/" in path:
            with suppress(threading.BrokenBarrierError):
                together.wait()
                met.append(path)

    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        uri = s3_server.new_uri("table.lance")
        proxy.lose = wait_for_the_others
        written = lance_ops.write_dataset(
            pa.table({"a": range(40)}), uri, max_rows_per_file=10, storage_options=options
        )
    assert len(met) == 4
    assert [fragment.physical_rows for fragment in written.get_fragments()] == [10] * 4


def test_a_clean_up_reads_ahead_and_deletes_all_files_in_one_request(s3_server: S3Server) -> None:
    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        table = Counted(s3_server.new_uri("table.lance"), options, proxy)
        table.open().update({"a": "a + 1"})
        stats = []
        requests = table.requests(lambda: stats.append(table.open().cleanup_old_versions(retain_versions=1)))
        # The manifests of the four old versions are deleted one by one, as is the announcement of their removal.
        assert requests == {"LIST": 33, "GET": 15, "HEAD": 4, "PUT": 2, "POST": 1, "DELETE": 5}
    assert (stats[0].old_versions, stats[0].data_files_removed, stats[0].failed_deletes) == (4, 4, 0)
    assert table.open().to_table()["a"].to_pylist() == [2, 3, 4] * 4


def test_versions_are_read_side_by_side(s3_server: S3Server) -> None:
    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        table = Counted(s3_server.new_uri("table.lance"), options, proxy)
        dataset, together, met = table.open(), threading.Barrier(4, timeout=120), list[str]()

        def wait_for_the_others(method: str, path: str) -> None:
            if path.endswith(".manifest"):
                with suppress(threading.BrokenBarrierError):
                    together.wait()
                    met.append(path)

        proxy.lose = wait_for_the_others
        assert len(dataset.versions()) == 4
    assert len(met) == 4
