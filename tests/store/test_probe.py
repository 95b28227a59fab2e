"""A store is used for commits only after the probe has shown that it honours a conditional create."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.core.errors import UnsafeStore, WriteRefused
from lance_ops.store import (
    BytesLike,
    Fault,
    FaultyStore,
    FsspecStore,
    LocalStore,
    MemoryStore,
    PutOutcome,
    probe,
    prove_conditional_create,
    put_new_as_proof,
)
from tests.lossy_proxy import lossy_proxy
from tests.s3_server import S3Server
from tests.servers.azure import AzureServer
from tests.store.conftest import ObjectServer


class Promising(MemoryStore):
    """A store whose atomicity is a server's promise, kept or not."""

    def __init__(self, keeps: bool = True) -> None:
        super().__init__()
        self.keeps = keeps

    @property
    def needs_proof(self) -> bool:
        return True

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        if self.keeps:
            return super().put_if_absent(path, data, after=after)
        self.put(path, data)
        return PutOutcome.CREATED


class RefusingAll(Promising):
    """A store that answers to every create that the object exists."""

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        return PutOutcome.EXISTS


def test_a_store_that_honours_the_condition_is_probed_once() -> None:
    store = FaultyStore(Promising())
    prove_conditional_create(store)
    num_calls = len(store.calls)
    prove_conditional_create(store)

    assert num_calls == len(store.calls) > 0
    assert list(store.list()) == list(store.list_temporary()) == []


def test_a_store_that_ignores_the_condition_is_refused_every_time() -> None:
    store = FaultyStore(Promising(keeps=False))
    with pytest.raises(UnsafeStore, match="external manifest store"):
        prove_conditional_create(store)
    num_calls = len(store.calls)
    with pytest.raises(UnsafeStore, match="external manifest store"):
        prove_conditional_create(store)
    put_new_as_proof(store, "object", b"new")
    assert [call.operation for call in store.calls[num_calls:]] == ["put_hint"]
    assert list(store.list_temporary()) == []


def test_renewed_credentials_leave_neither_secrets_nor_ever_more_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: OrderedDict[object, bool] = OrderedDict()
    monkeypatch.setattr(probe, "_IS_SAFE", kept)
    monkeypatch.setattr(probe, "_is_proven", lambda _: True)
    for number in range(300):
        options = {"aws_session_token": f"hunter{number}", "aws_access_key_id": "key", "aws_region": "here"}
        prove_conditional_create(FsspecStore("s3://bucket/t", options))
    assert len(kept) == 256 and "hunter" not in repr(kept)
    same = FsspecStore("s3://bucket/other", options).proof_scope
    assert same in kept and FsspecStore("s3://bucket2/t", options).proof_scope not in kept


def test_a_new_object_proves_the_store_without_a_probe() -> None:
    store = FaultyStore(Promising())
    put_new_as_proof(store, "first", b"new")
    prove_conditional_create(store)
    put_new_as_proof(store, "second", b"other")

    calls = [(call.operation, call.path) for call in store.calls]
    assert calls == [("put_if_absent", "first"), ("put_if_absent", "first"), ("put_hint", "second")]
    assert [store.get(path).to_pybytes() for path in ("first", "second")] == [b"new", b"other"]


def test_a_long_object_makes_no_proof() -> None:
    store = FaultyStore(Promising())
    put_new_as_proof(store, "long", bytes((1 << 20) + 1))
    assert [call.operation for call in store.calls] == ["put_hint"]


@pytest.mark.parametrize(
    ("store", "error"),
    [(Promising(keeps=False), UnsafeStore), (RefusingAll(), WriteRefused)],
    ids=["ignores", "refuses"],
)
def test_a_new_object_is_written_also_where_it_proves_nothing(store: Promising, error: type[Exception]) -> None:
    put_new_as_proof(store, "object", b"new")
    assert store.get("object").to_pybytes() == b"new"
    with pytest.raises(error, match="conditional create|external manifest store"):
        prove_conditional_create(store)


@pytest.mark.parametrize("call", [1, 2])
def test_a_new_object_is_written_also_if_a_create_fails_and_the_next_one_proves_the_store(call: int) -> None:
    store = FaultyStore(Promising(), Fault("put_if_absent", call=call))
    put_new_as_proof(store, "first", b"new")
    put_new_as_proof(store, "second", b"new")
    num_calls = len(store.calls)
    prove_conditional_create(store)
    assert len(store.calls) == num_calls
    assert store.get("first") == store.get("second") == pa.py_buffer(b"new")


def test_a_store_that_cannot_be_probed_refuses_the_write_and_is_probed_again() -> None:
    store = FaultyStore(Promising(), Fault("put_if_absent", call=2))
    with pytest.raises(WriteRefused, match="conditional create"):
        prove_conditional_create(store)
    prove_conditional_create(store)
    assert list(store.list_temporary()) == []


def test_a_probe_object_that_cannot_be_removed_is_listed_as_temporary() -> None:
    store = FaultyStore(Promising(), Fault("delete"))
    prove_conditional_create(store)
    assert list(store.list()) == []
    assert len(list(store.list_temporary())) == 1


def test_a_first_create_retried_by_the_client_is_read_to_pass_the_probe() -> None:
    class RetriedByItself(Promising):
        def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
            super().put_if_absent(path, data, after=after)
            return PutOutcome.EXISTS

    store = FaultyStore(RetriedByItself())
    put_new_as_proof(store, "object", b"new")
    assert [call.operation for call in store.calls] == ["put_if_absent", "put_if_absent", "get"]
    prove_conditional_create(store)
    assert len(store.calls) == 3


def test_local_and_memory_stores_need_no_proof(tmp_path: object) -> None:
    for store in (FaultyStore(LocalStore(str(tmp_path))), FaultyStore(MemoryStore())):
        prove_conditional_create(store)
        assert store.calls == ()


def test_nothing_is_committed_on_a_server_that_ignores_the_condition(object_server: ObjectServer) -> None:
    with lossy_proxy(object_server.endpoint, loses_conditions=True) as proxy:
        careless = replace(object_server, endpoint=proxy.endpoint)
        # A request that is signed with its condition cannot lose it.
        options = careless.signed_options if isinstance(careless, AzureServer) else careless.storage_options
        uri = object_server.new_uri("table")
        with pytest.raises(UnsafeStore, match="ignores the condition"):
            PutIfAbsentCommitter(FsspecStore(uri, options)).commit(1, b"manifest")
        with pytest.raises(UnsafeStore, match="ignores the condition"):
            lance_ops.write_dataset(pa.table({"a": [1]}), uri, storage_options=options)
    store = FsspecStore(uri, object_server.storage_options)
    assert [found.path for found in store.list() if not found.path.startswith(("data/", "_transactions/"))] == []
    assert list(store.list_temporary()) == []


def test_a_server_that_honours_the_condition_is_proven_and_left_clean(object_server: ObjectServer) -> None:
    store = object_server.new_store()
    prove_conditional_create(store)
    assert list(store.list()) == list(store.list_temporary()) == []


@pytest.mark.server
def test_one_proof_serves_every_table_of_a_bucket(s3_server: S3Server) -> None:
    with lossy_proxy(s3_server.endpoint) as proxy:
        options = replace(s3_server, endpoint=proxy.endpoint).storage_options
        uri = s3_server.new_uri("first")
        prove_conditional_create(FsspecStore(uri, options))
        assert len(proxy.seen) == 3
        for other in (uri, uri.replace("first", "second")):
            prove_conditional_create(FsspecStore(other, options))
        assert len(proxy.seen) == 3
        prove_conditional_create(FsspecStore(s3_server.new_uri("first"), options))
        assert len(proxy.seen) == 6


def test_of_two_threads_one_does_the_proof_and_the_other_waits_for_it() -> None:
    begun, may_end = threading.Event(), threading.Event()

    class Slow(Promising):
        num_creates = 0

        def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
            self.num_creates += 1
            begun.set()
            assert may_end.wait(60)
            return super().put_if_absent(path, data, after=after)

    store = Slow()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(prove_conditional_create, store)
        assert begun.wait(60)
        second = threads.submit(prove_conditional_create, store)
        may_end.set()
        first.result(60)
        second.result(60)
    assert store.num_creates == 2
