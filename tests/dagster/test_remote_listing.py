"""A landing folder in S3 is listed by the store's client, and answers what s3fs would have answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import boto3
import pytest
from fsspec.config import conf as fsspec_settings

from lance_ops.dagster.declaration import StoreLocation
from lance_ops.dagster.landing.landing import list_files
from lance_ops.dagster.landing.landing_entries import LandedFile, SetAside
from lance_ops.errors import StoreError, StoreUnreachable
from lance_ops.store import FsspecStore, ObjectInfo
from tests.lossy_proxy import lossy_proxy
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server

pytestmark = [pytest.mark.dagster, pytest.mark.server]

PLAIN = ("a.csv", "day=1/b.parquet", "day=1/_SUCCESS", "day=2/100% of ä.csv", "day=2/a b+c?.csv", "mark/")
REFUSED_BY_OBSTORE = "day=3//c.csv"


def landing_with(server: S3Server, *names: str) -> StoreLocation:
    bucket = server.new_bucket()
    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
    client = boto3.client("s3", endpoint_url=server.endpoint, region_name="us-east-1", **keys)
    for name in names:
        client.put_object(Bucket=bucket, Key=f"in/{name}", Body=b"" if name.endswith(("_SUCCESS", "/")) else b"x\n1\n")
    client.put_object(Bucket=bucket, Key="in-another-folder/d.csv", Body=b"x")
    client.close()
    options = {"key": ACCESS_KEY, "secret": SECRET_KEY, "endpoint_url": server.endpoint}
    return StoreLocation(f"s3://{bucket}/in/", options)


def by_s3fs(location: StoreLocation) -> StoreLocation:
    """Return the location with an option that only s3fs has."""
    return replace(location, storage_options={**location.storage_options, "default_cache_type": "readahead"})


@pytest.fixture
def store_listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stores that were listed to their end."""
    listings, plain = list[str](), FsspecStore.list

    def recorded(store: FsspecStore, prefix: str = "") -> Iterator[ObjectInfo]:
        yield from plain(store, prefix)
        listings.append(store.uri)

    monkeypatch.setattr(FsspecStore, "list", recorded)
    return listings


@pytest.mark.parametrize(
    "names", [PLAIN, (*PLAIN, REFUSED_BY_OBSTORE)], ids=["plain names", "one that obstore refuses"]
)
def test_the_store_lists_what_s3fs_lists(
    s3_server: S3Server, names: tuple[str, ...], store_listings: list[str]
) -> None:
    location = landing_with(s3_server, *names)
    found = {entry.path: entry for entry in list_files(location)}
    by_the_store = [] if REFUSED_BY_OBSTORE in names else [location.uri.rstrip("/")]
    assert store_listings == by_the_store
    assert found == {entry.path: entry for entry in list_files(by_s3fs(location))}
    assert store_listings == by_the_store
    assert found.keys() == {*names} - {"mark/"}
    landed = found["day=1/b.parquet"]
    assert isinstance(landed, LandedFile) and landed.token == landed.etag and landed.size_bytes == 4
    assert isinstance(found.get(REFUSED_BY_OBSTORE), SetAside) == (REFUSED_BY_OBSTORE in names)


def test_a_folder_that_is_not_there_is_empty(s3_server: S3Server) -> None:
    assert list(list_files(landing_with(s3_server))) == []


@pytest.mark.parametrize("place", [lambda location: location, by_s3fs], ids=["by the store", "by s3fs"])
def test_a_bucket_that_is_not_there_is_named_with_the_remedy(
    s3_server: S3Server, place: Callable[[StoreLocation], StoreLocation]
) -> None:
    location = replace(place(landing_with(s3_server)), uri="s3://no-such-bucket-anywhere/in")
    with pytest.raises(StoreError, match=r"no-such-bucket-anywhere.*there is no such bucket .*: create it, or mend"):
        list(list_files(location))


def test_a_store_that_does_not_answer_is_not_asked_by_s3fs_too(s3_server: S3Server) -> None:
    with lossy_proxy(s3_server.endpoint) as proxy:
        location = landing_with(s3_server, "a.csv")
        location = replace(location, storage_options={**location.storage_options, "endpoint_url": proxy.endpoint})
        assert [entry.path for entry in list_files(location)] == ["a.csv"]
        proxy.lose = lambda method, path: "request"
        proxy.seen.clear()
        with pytest.raises(StoreUnreachable, match="the store does not answer: see whether its endpoint is right"):
            list_files(location)
        assert len(proxy.seen) <= 11, "one client's attempts"
        proxy.lose = lambda method, path: None
        assert [entry.path for entry in list_files(location)] == ["a.csv"]


def test_variables_that_only_stores_read_leave_the_listing_to_s3fs(
    s3_server: S3Server, store_listings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    location = landing_with(s3_server, "a.csv")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of other credentials")
    assert [entry.path for entry in list_files(location)] == ["a.csv"]
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:1")
    assert [entry.path for entry in list_files(location)] == ["a.csv"]
    assert store_listings == []


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_settings_of_fsspec_leave_the_listing_to_s3fs(
    s3_server: S3Server, store_listings: list[str], monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    location = landing_with(s3_server, "a.csv")
    monkeypatch.setitem(fsspec_settings, scheme, {"key": ACCESS_KEY, "secret": SECRET_KEY})
    only_the_server = {"endpoint_url": s3_server.endpoint}
    assert [entry.path for entry in list_files(replace(location, storage_options=only_the_server))] == ["a.csv"]
    assert store_listings == []
