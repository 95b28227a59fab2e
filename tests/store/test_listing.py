"""A long listing of S3 is cut into directories, which are asked for side by side; the answer is the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from lance_ops.store import FsspecStore
from tests.lossy_proxy import LossyProxy, lossy_proxy
from tests.s3_server import S3Server
from tests.servers.listed_bucket import listed_bucket, object_name

pytestmark = pytest.mark.server

NUM_OBJECTS = 3500


@pytest.fixture(scope="module")
def proxy() -> Iterator[LossyProxy]:
    with listed_bucket(NUM_OBJECTS) as endpoint, lossy_proxy(endpoint) as proxy:
        yield proxy


def listed(proxy: LossyProxy, root: str, client: str = "obstore") -> list[str]:
    proxy.seen.clear()
    server = S3Server(proxy.endpoint, client)
    return [found.path for found in FsspecStore(f"s3://bucket{root}", server.storage_options).list()]


@pytest.mark.parametrize("root", ["", "/landing"])
def test_the_folders_of_a_long_listing_are_listed_side_by_side(proxy: LossyProxy, root: str) -> None:
    together, came, met = threading.Barrier(4, timeout=120), set[str](), set[str]()

    def wait_for_the_others(method: str, path: str) -> None:
        is_of_a_folder = any(f"day{day:04}%2F&" in f"{path}&" or f"day{day:04}/&" in f"{path}&" for day in range(4))
        if is_of_a_folder and path not in came:  # a request that is sent again finds nobody to wait for
            came.add(path)
            with suppress(threading.BrokenBarrierError):
                together.wait()
                met.add(path)

    proxy.lose = wait_for_the_others
    found = listed(proxy, root)
    proxy.lose = lambda method, path: None
    assert found == [f"{object_name(number)}".removeprefix(f"{root}/"[1:]) for number in range(NUM_OBJECTS)]
    assert len(met) == 4
    # The first page, the folders of each level, and a page of each folder.
    assert len({*proxy.seen}) == 1 + (1 if root else 2) + 4


def test_a_folder_without_folders_is_listed_page_by_page(proxy: LossyProxy) -> None:
    assert len(listed(proxy, "/landing/day0000")) == 1000
    assert len({*proxy.seen}) == 1


def test_both_clients_list_the_same(proxy: LossyProxy) -> None:
    assert listed(proxy, "/landing", "fsspec") == listed(proxy, "/landing")


def test_a_listing_that_is_left_early_asks_for_one_page(proxy: LossyProxy) -> None:
    store = FsspecStore("s3://bucket/landing", S3Server(proxy.endpoint, "obstore").storage_options)
    proxy.seen.clear()
    assert next(store.list()).path == "day0000/f0000000.parquet"
    assert len({*proxy.seen}) == 1
