from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from lance_ops.store import FsspecStore
from lance_ops.store.process_resources import PROCESS_RESOURCES, ProcessResources
from tests.store.conftest import client_of


class Client:
    """Something with a life of its own."""


def test_a_client_is_made_once_for_a_key() -> None:
    clients = ProcessResources()
    first = clients.client("a", Client)
    assert clients.client("a", Client) is first
    assert clients.client("b", Client) is not first


def test_a_slow_client_is_made_once_and_delays_no_other() -> None:
    clients = ProcessResources()
    begun, may_end = Event(), Event()
    made: list[Client] = []

    def make() -> Client:
        begun.set()
        assert may_end.wait(60)
        made.append(Client())
        return made[-1]

    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(clients.client, "slow", make)
        assert begun.wait(60)
        also = threads.submit(clients.client, "slow", make)
        clients.client("other", Client)
        clients.threads().submit(int).result()
        may_end.set()
        assert slow.result() is also.result() is made[0]
    assert len(made) == 1


def test_a_client_that_failed_to_open_is_made_at_the_next_call() -> None:
    clients = ProcessResources()

    def fail() -> Client:
        raise OSError("connection refused")

    for _ in range(2):
        with pytest.raises(OSError, match="refused"):
            clients.client("a", fail)
    assert clients.client("a", lambda: "made") == "made"


def test_only_the_clients_used_last_are_kept() -> None:
    clients = ProcessResources()
    often = clients.client("often", Client)
    made = []
    for number in range(1000):
        made.append(weakref.ref(clients.client(number, Client)))
        assert clients.client("often", Client) is often
    gc.collect()
    alive = [client for client in made if client() is not None]
    assert 2 <= len(alive) <= 100
    assert alive == made[-len(alive) :]


def test_an_evicted_client_is_passed_to_on_evict() -> None:
    clients = ProcessResources()
    let_go: list[str] = []
    assert clients.client("oldest", lambda: "itself", let_go.append) == "itself"
    for number in range(1000):
        clients.client(number, Client)
    assert let_go == ["itself"]


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("s3://one/a", "s3://other/b", True),
        ("gs://one", "gs://other", True),
        ("az://one", "az://other", True),
        ("abfss://one@first.dfs.core.windows.net", "abfss://other@first.dfs.core.windows.net", True),
        ("abfss://one@first.dfs.core.windows.net", "abfss://one@second.dfs.core.windows.net", False),
        ("http://one/a", "http://other/a", False),
    ],
)
def test_buckets_of_one_account_share_a_client(
    one: str, other: str, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = []
    monkeypatch.setenv("LANCE_OPS_STORE_CLIENT", "fsspec")
    monkeypatch.setattr(PROCESS_RESOURCES, "client", lambda key, make: keys.append(key))
    for uri in (one, other):
        client_of(FsspecStore(uri, {"account_name": "name"} if uri.startswith("az:") else {}))
    assert (keys[0] == keys[1]) is shared


def test_other_credentials_use_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    monkeypatch.setattr(PROCESS_RESOURCES, "client", lambda key, make: keys.append(key))
    for token in ("old", "new"):
        client_of(FsspecStore("s3://bucket", {"aws_session_token": token}))
    assert keys[0] != keys[1]
