from __future__ import annotations

import gc
import weakref

import pytest

from lance_ops.store import FsspecStore
from lance_ops.store.per_process import PER_PROCESS, PerProcess


class Client:
    """Something with a life of its own."""


def test_a_client_is_made_once_for_a_key() -> None:
    clients = PerProcess()
    first = clients.client("a", Client)
    assert clients.client("a", Client) is first
    assert clients.client("b", Client) is not first


def test_the_clients_that_were_used_last_are_kept_and_others_let_go() -> None:
    clients = PerProcess()
    often = clients.client("often", Client)
    made = []
    for number in range(1000):
        made.append(weakref.ref(clients.client(number, Client)))
        assert clients.client("often", Client) is often
    gc.collect()
    alive = [client for client in made if client() is not None]
    assert 2 <= len(alive) <= 100
    assert alive == made[-len(alive) :]


def test_a_client_that_is_let_go_may_give_back_what_it_holds() -> None:
    clients = PerProcess()
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
    monkeypatch.setattr(PER_PROCESS, "client", lambda key, make: keys.append(key))
    for uri in (one, other):
        FsspecStore(uri, {"account_name": "name"} if uri.startswith("az:") else {})._fs()
    assert (keys[0] == keys[1]) is shared


def test_other_credentials_are_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    monkeypatch.setattr(PER_PROCESS, "client", lambda key, make: keys.append(key))
    for token in ("old", "new"):
        FsspecStore("s3://bucket", {"aws_session_token": token})._fs()
    assert keys[0] != keys[1]
