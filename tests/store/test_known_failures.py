"""Failures that a user can mend are one sentence with the remedy, by every client, without the client's own errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from lance_ops.errors import StoreError, StoreUnreachable, WriteRefused
from lance_ops.store import FsspecStore
from tests.lossy_proxy import LossyProxy, lossy_proxy
from tests.s3_server import S3Server

pytestmark = pytest.mark.server

_PATIENCE = {"client_max_retries": "1", "download_retry_count": "0", "request_timeout": "5s", "connect_timeout": "5s"}


def refusal(status: int, code: str) -> tuple[int, str]:
    return status, f"<Error><Code>{code}</Code><Message>says the store</Message></Error>"


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[LossyProxy]:
    with lossy_proxy(s3_server.endpoint) as made:
        yield made


@pytest.fixture(params=["obstore", "fsspec"])
def store(request: pytest.FixtureRequest, s3_server: S3Server, proxy: LossyProxy) -> FsspecStore:
    options = {**s3_server.storage_options, **_PATIENCE, "aws_endpoint": proxy.endpoint, "store_client": request.param}
    return FsspecStore(s3_server.new_uri(), options)


def listing(store: FsspecStore) -> object:
    return list(store.list())


def getting(store: FsspecStore) -> object:
    return store.get("a")


@pytest.mark.parametrize("ask", [listing, getting])
@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (
            403,
            "InvalidAccessKeyId",
            "does not accept the access key and its secret (InvalidAccessKeyId): set the right",
        ),
        (403, "SignatureDoesNotMatch", "does not accept the access key and its secret (SignatureDoesNotMatch): set "),
        (
            400,
            "ExpiredToken",
            "the session token is no longer valid (ExpiredToken): set new credentials in storage_opt",
        ),
        (403, "AccessDenied", "the credentials may not do this (AccessDenied): allow it to them, or use others"),
        (403, "RequestTimeTooSkewed", "this machine's clock differs from the store's (RequestTimeTooSkewed): synchron"),
        (503, "SlowDown", "the store takes no more requests for now (SlowDown): send fewer at once, try again later"),
    ],
)
def test_an_answer_that_names_a_fault_is_told_with_its_remedy(
    store: FsspecStore, proxy: LossyProxy, status: int, code: str, told: str, ask: Callable[[FsspecStore], object]
) -> None:
    store.put("a", b"x")
    proxy.refusal = refusal(status, code)
    with pytest.raises(StoreError) as caught:
        ask(store)
    assert told in str(caught.value) and store.uri in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    proxy.refusal = None
    assert store.get("a").to_pybytes() == b"x", "the client goes on when the store answers again"


def test_a_write_that_the_store_refuses_is_told_so(store: FsspecStore, proxy: LossyProxy) -> None:
    proxy.refusal = refusal(403, "AccessDenied")
    with pytest.raises(WriteRefused, match="the credentials may not do this"):
        store.put("a", b"x")


def test_a_write_that_a_busy_store_does_not_take_is_not_refused_for_good(store: FsspecStore, proxy: LossyProxy) -> None:
    proxy.refusal = refusal(503, "SlowDown")
    with pytest.raises(StoreError, match="the store takes no more requests for now") as caught:
        store.put("a", b"x")
    assert not isinstance(caught.value, WriteRefused), "a request before this one may have been carried out"


def test_a_store_that_does_not_answer_is_told_apart_and_is_asked_again(store: FsspecStore, proxy: LossyProxy) -> None:
    store.put("a", b"x")
    proxy.lose = lambda method, path: "request"
    for ask in (listing, getting):
        with pytest.raises(
            StoreUnreachable, match="the store does not answer: see whether its endpoint is right, runs"
        ):
            ask(store)
    proxy.lose = lambda method, path: None
    assert store.get("a").to_pybytes() == b"x"


def test_a_bucket_that_is_not_there_is_told_by_a_listing_of_names(store: FsspecStore) -> None:
    elsewhere = FsspecStore("s3://no-such-bucket/data", dict(store.storage_options))
    with pytest.raises(StoreError, match=r"there is no such bucket \(NoSuchBucket\): create it, or mend its name"):
        elsewhere.list_names("", 1)
    with pytest.raises(WriteRefused, match="there is no such bucket"):
        elsewhere.put("a", b"x")
    assert list(store.list_names("nothing/here", 1)) == []
