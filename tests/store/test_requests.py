"""How often an object store is asked: what a commit and a scan cost, counted by a proxy before a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

import lance_ops
from tests.lossy_proxy import LossyProxy, lossy_proxy
from tests.s3_server import S3Server

pytestmark = pytest.mark.server

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


class Counted:
    """A table of some fragments, and the requests that doing something to it takes."""

    def __init__(self, server: S3Server, proxy: LossyProxy) -> None:
        self.uri = server.new_uri("table.lance")
        self.options = replace(server, endpoint=proxy.endpoint).storage_options
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
        seen = self._proxy.seen[before:]
        return Counter("LIST" if "list-type" in path else method for method, path in seen)


@pytest.fixture
def counted(s3_server: S3Server) -> Iterator[Counted]:
    with lossy_proxy(s3_server.endpoint) as proxy:
        yield Counted(s3_server, proxy)


def test_opening_takes_a_list_and_a_manifest(counted: Counted) -> None:
    assert counted.requests(counted.open) == {"LIST": 1, "GET": 1}


def test_an_append_writes_three_objects_and_looks_before_and_after_it(counted: Counted) -> None:
    # The file, the transaction and the manifest. Versions are listed to open the table, before the commit and after it;
    # and one look whether the version read is still that one.
    assert counted.requests(counted.append) == {"LIST": 3, "GET": 1, "PUT": 3, "HEAD": 1}


def test_a_scan_takes_one_request_a_small_file_and_the_next_scan_none(counted: Counted) -> None:
    dataset = counted.open()
    assert counted.requests(dataset.to_table) == {"GET": 4}
    assert counted.requests(lambda: dataset.to_table(filter="a = 2", columns=["b"])) == {}
    assert counted.requests(lambda: dataset.take([0, 5, 11])) == {}


def test_a_delete_reads_each_small_file_once(counted: Counted) -> None:
    # Four deletion files, the transaction and the manifest; and the same looks.
    dataset = counted.open()
    assert counted.requests(lambda: dataset.delete("a = 2")) == {"GET": 4, "LIST": 2, "PUT": 6, "HEAD": 1}
