"""What stores do with obstore as their client, besides what all stores do."""

from __future__ import annotations

import os
import pickle
import ssl
import subprocess
import sys
import textwrap
import threading
import traceback
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lance_ops.core.errors import InvalidInput, ObjectNotFound, StoreError, WriteRefused
from lance_ops.store import FsspecStore, PutOutcome
from lance_ops.store.services.obstore import ObstoreS3
from lance_ops.store.services.obstore import s3 as on_s3
from lance_ops.store.services.obstore import service as obstore_service
from lance_ops.store.services.obstore.errors import RequestFailed
from lance_ops.store.services.obstore.unsigned_head import time_of_server
from tests.lossy_proxy import lossy_proxy, request_name
from tests.s3_server import S3Server
from tests.servers.answering import AnsweringServer, answering_server
from tests.servers.azure import AzureServer
from tests.servers.obstore import through_fsspec, through_obstore
from tests.store.conftest import client_of

pytest.importorskip("obstore", reason="obstore is not installed")
pytestmark = [pytest.mark.server, pytest.mark.usefixtures("no_old_clients")]

SECRET = "wJalrXUtnFEMI/K7MDENGbPxRfiCY"


@pytest.fixture
def azure(azure_server: AzureServer) -> FsspecStore:
    return through_obstore(azure_server).new_store()


def store_at(server: AnsweringServer, **options: str) -> FsspecStore:
    keys = {"access_key_id": "id", "secret_access_key": SECRET, "region": "us-east-1", "client_max_retries": "0"}
    at = {"endpoint": server.endpoint, "allow_http": "true", "store_client": "obstore"}
    return FsspecStore("s3://bucket/table", {**keys, **at, **options})


@pytest.mark.parametrize("status", [200, 301, 403])
def test_a_bucket_in_another_region_than_the_configured_one_is_reached_in_its_own(
    nothing_configured: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    keys = {"access_key_id": "id", "secret_access_key": SECRET}
    with answering_server(lambda *_: (status, "")) as server:
        monkeypatch.setattr(on_s3, "_address_of", lambda region: f"{server.endpoint}/{region}")
        server.more_headers["x-amz-bucket-region"] = "eu-west-3"
        assert client_of(FsspecStore("s3://bucket/table", keys)).config["region"] == "eu-west-3"
        ((method, headers),) = server.seen
        assert (method, headers["authorization"]) == ("HEAD", None)
        # A region among the options is that of the bucket.
        assert (
            client_of(FsspecStore("s3://bucket/table", {**keys, "region": "us-west-1"})).config["region"] == "us-west-1"
        )
        assert len(server.seen) == 1
        del server.more_headers["x-amz-bucket-region"]
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
        assert client_of(FsspecStore("s3://bucket/table", keys)).config["region"] == "us-west-2"
        assert len(server.seen) == 2


def test_without_a_time_in_an_answer_the_clock_is_that_of_an_object(
    s3: FsspecStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = s3.now()
    monkeypatch.setattr(obstore_service, "time_of_server", lambda *_, **__: None)
    assert timedelta(seconds=-2) < s3.now() - stated < timedelta(minutes=10)
    assert list(s3.list_temporary()) == []


def test_a_clock_comes_from_any_answer_but_a_failure_and_from_no_other_server() -> None:
    status = 403
    with answering_server(lambda *_: (status, "")) as server:
        assert time_of_server(f"{server.endpoint}/bucket", {}) is not None
        assert time_of_server("http://store.invalid/bucket", {"http": server.endpoint}) is not None
        status, server.more_headers["location"] = 301, "http://127.0.0.1:1/"
        assert time_of_server(server.endpoint, {}) is not None
        status = 502
        assert time_of_server(server.endpoint, {}) is None
    assert time_of_server("http://127.0.0.1:1/", {}) is None


def test_trusted_certificates_are_parsed_once_until_others_are_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parsed: list[ssl.SSLContext] = []
    create = ssl.create_default_context

    def counted() -> ssl.SSLContext:
        parsed.append(create())
        return parsed[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    trusted = tmp_path / "trusted.pem"
    trusted.write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    with answering_server(lambda *_: (200, "")) as server:
        assert time_of_server(server.endpoint, {}) is not None
        assert time_of_server(server.endpoint, {}) is not None
        assert len(parsed) == 1
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "others"))
        assert time_of_server(server.endpoint, {}) is not None
        assert len(parsed) == 2
        os.utime(trusted, ns=(0, 0))  # renewed in place
        assert time_of_server(server.endpoint, {}) is not None
    assert len(parsed) == 3


def test_a_table_is_written_and_read_without_loading_fsspec(s3_server: S3Server) -> None:
    server = through_obstore(s3_server)
    program = """
        import sys, pickle, pyarrow as pa, lance_ops
        uri, options = pickle.load(sys.stdin.buffer)
        lance_ops.write_dataset(pa.table({"a": [1, 2, 3]}), uri, storage_options=options)
        lance_ops.dataset(uri, storage_options=options).delete("a = 2")
        assert lance_ops.dataset(uri, storage_options=options).to_table().column("a").to_pylist() == [1, 3]
        assert "obstore" in sys.modules
        print(sorted({"s3fs", "aiobotocore", "botocore", "aiohttp"} & sys.modules.keys()))
    """
    options = server.storage_options
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        input=pickle.dumps((server.new_uri("table.lance"), options)),
        capture_output=True,
        check=True,
        timeout=240,
    )
    assert run.stdout == b"[]\n"


def test_an_option_says_for_how_long_requests_are_sent_again() -> None:
    def retried(**options: str) -> timedelta:
        config: dict[str, timedelta] = ObstoreS3().arguments("bucket", options)["retry_config"]
        return config["retry_timeout"]

    assert retried(client_retry_timeout="20s") == timedelta(seconds=20) < retried()


def test_throttled_requests_are_sent_again() -> None:
    throttled = (503, "<Error><Code>SlowDown</Code></Error>")
    with answering_server(lambda before, _: throttled if before < 2 else (200, "")) as server:
        assert store_at(server, client_max_retries="3").put_if_absent("v/1", b"x") is PutOutcome.CREATED
    assert [method for method, _ in server.seen] == ["PUT"] * 3
    assert {headers["if-none-match"] for _, headers in server.seen} == {"*"}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 501])
def test_a_final_answer_is_a_refusal(status: int) -> None:
    with answering_server(lambda *_: (status, "<Error><Code>No</Code></Error>")) as server:
        store = store_at(server)
        with pytest.raises(WriteRefused, match="cannot write s3://bucket/table/v/1"):
            store.put_if_absent("v/1", b"x")
        with pytest.raises(WriteRefused, match="cannot write s3://bucket/table/a"):
            store.put("a", b"x")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_any_other_answer_to_a_create_leaves_the_outcome_unknown(status: int) -> None:
    body = "<Error><Code>ConditionalRequestConflict</Code></Error>"
    with answering_server(lambda *_: (status, body)) as server, pytest.raises(StoreError) as caught:
        store_at(server).put_if_absent("v/1", b"x")
    assert not isinstance(caught.value, WriteRefused | ObjectNotFound)


def test_a_server_that_stalls_leaves_the_outcome_unknown() -> None:
    given_up = threading.Event()

    def stall(*_: object) -> tuple[int, str]:
        given_up.wait(120)
        return 200, ""

    with answering_server(stall) as server:
        with pytest.raises(StoreError) as caught:
            store_at(server, request_timeout="200ms").put_if_absent("v/1", b"x")
        given_up.set()
    assert not isinstance(caught.value, WriteRefused | ObjectNotFound)


def test_only_a_failed_condition_says_that_the_object_exists() -> None:
    with answering_server(lambda *_: (412, "<Error/>")) as server:
        assert store_at(server).put_if_absent("v/1", b"x") is PutOutcome.EXISTS


def test_what_a_server_repeats_of_the_credentials_is_not_shown() -> None:
    def repeat(_: int, headers: Any) -> tuple[int, str]:
        return (
            400,
            f"{headers['authorization']} {headers['x-amz-security-token']} {SECRET} http://u:pass4321@host/?sig=abc",
        )

    with answering_server(repeat) as server:
        store = store_at(server, session_token="token-" + SECRET)
        for use in (lambda: store.get("a"), lambda: store.put("a", b"x"), lambda: list(store.list())):
            with pytest.raises(StoreError) as caught:
                use()
            shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
            assert "***" in shown and "status code: 400" in shown
            assert not [part for part in (SECRET, "pass4321", "sig=abc") if part in shown]
            assert "Debug source" not in shown


def test_encryption_and_anonymous_access_reach_the_server() -> None:
    with answering_server(lambda *_: (200, "")) as server:
        store = store_at(
            server,
            aws_server_side_encryption="aws:kms",
            aws_sse_kms_key_id="key",
            aws_sse_bucket_key_enabled="true",
        )
        store.put("a", b"x")
        store_at(server, skip_signature="true").put("a", b"x")
    (_, encrypted), (_, anonymous) = server.seen
    assert encrypted["x-amz-server-side-encryption"] == "aws:kms"
    assert encrypted["x-amz-server-side-encryption-aws-kms-key-id"] == "key"
    assert encrypted["x-amz-server-side-encryption-bucket-key-enabled"] == "true"
    assert "Credential=id/" in encrypted["authorization"]
    assert anonymous["authorization"] is None


def test_plain_http_must_be_allowed() -> None:
    with pytest.raises(InvalidInput, match="allow_http"):
        FsspecStore("s3://bucket/table", {"endpoint": "http://127.0.0.1:1", "store_client": "obstore"})


def test_stores_share_a_client_for_each_bucket_and_each_package(s3_server: S3Server) -> None:
    server = through_obstore(s3_server)
    first, second = server.new_store(), server.new_store()
    assert client_of(first) is client_of(first.child("a")) is client_of(pickle.loads(pickle.dumps(first)))
    assert client_of(first) is not client_of(second)
    assert (
        type(client_of(FsspecStore(first.root, through_fsspec(s3_server).storage_options))).__name__ == "S3FileSystem"
    )


@pytest.mark.usefixtures("nothing_configured")
def test_without_credentials_the_error_says_so() -> None:
    with pytest.raises(StoreError, match="no credentials for S3"):
        FsspecStore("s3://bucket/table", {"store_client": "obstore"}).get("a")


def test_the_first_names_of_a_long_directory_take_one_request(s3_server: S3Server) -> None:
    server = through_obstore(s3_server)
    with lossy_proxy(server.endpoint) as proxy:
        store = FsspecStore(server.new_uri(), {**server.storage_options, "aws_endpoint": proxy.endpoint})
        for index in range(101):  # the server lists 100 names at once
            store.put(f"v/{index:03}", b"x")
        proxy.seen.clear()
        assert store.list_names("v", limit=2) == ["000", "001"]
        assert [request_name(*asked) for asked in proxy.seen] == ["LIST"]
        assert len(store.list_names("v")) == len(list(store.list("v"))) == 101
        assert [request_name(*asked) for asked in proxy.seen] == ["LIST"] * 5


@pytest.mark.server
def test_a_call_of_the_client_asks_for_several_ranges(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    get_ranges = ObstoreS3.get_ranges

    def recorded(self: ObstoreS3, fs: Any, key: str, ranges: Any) -> Any:
        asked.append(len(ranges))
        return get_ranges(self, fs, key, ranges)

    monkeypatch.setattr(ObstoreS3, "get_ranges", recorded)
    with lossy_proxy(s3_server.endpoint) as proxy:
        store = through_obstore(replace(s3_server, endpoint=proxy.endpoint)).new_store()
        data = bytes(range(256)) * (3 << 12)
        store.put("a", data)
        proxy.seen.clear()
        ranges = [(start, start + 5) for start in range(0, len(data), 300 << 10)]
        found = store.get_ranges("a", ranges)
    assert [bytes(piece) for piece in found] == [data[start:end] for start, end in ranges]
    assert sorted(asked) == [3, 8]
    assert [request_name(*seen) for seen in proxy.seen] == ["GET"] * len(ranges)


@pytest.mark.parametrize("service", ["s3", "azure"])
def test_several_objects_are_deleted_in_one_request(request: pytest.FixtureRequest, service: str) -> None:
    server = through_obstore(request.getfixturevalue(f"{service}_server"))
    with lossy_proxy(server.endpoint) as proxy:
        store = FsspecStore(server.new_uri(), replace(server, endpoint=proxy.endpoint).storage_options)
        for name in ("a", "dir/b c&d", "e", "kept"):
            store.put(name, b"x")
        proxy.seen.clear()
        assert store.delete_several(["a", "dir/b c&d"]) == set()
        assert [method for method, _ in proxy.seen] == ["POST"]
        assert store.delete_several(["missing", "e"]) == set()
        assert [info.path for info in store.list()] == ["kept"]


def test_markers_of_directories_are_no_objects(s3_server: S3Server, azure_server: AzureServer) -> None:
    import boto3

    from tests.s3_server import ACCESS_KEY, SECRET_KEY

    on_s3, on_azure = through_obstore(s3_server).new_store(), through_obstore(azure_server).new_store()
    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY, "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=s3_server.endpoint, **keys)
    bucket = on_s3.root.split("/")[2]
    for key in ("data/", "data/dir/", "data/empty/"):
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    client.close()
    for name in ("data/dir", "data/empty"):
        client_of(on_azure).put(name, b"", attributes={"hdi_isfolder": "true"})
    for store in (on_s3, on_azure):
        store.put("dir/a", b"x")
        store.put("nothing", b"")
        assert {found.path for found in store.list()} == {"dir/a", "nothing"}
        assert store.list_names("") == store.list_names("", limit=5) == ["nothing"]
        assert [found.path for found in store.list("dir")] == ["dir/a"]
        assert not store.exists("dir")
        assert not store.exists("empty")


def uploads_of(server: S3Server, store: FsspecStore) -> list[Any]:
    """Return the uploads that nobody has ended."""
    plain = FsspecStore(store.root, through_fsspec(server).storage_options)
    answer = client_of(plain).call_s3("list_multipart_uploads", Bucket=store.root.split("/")[2])
    found: list[Any] = answer.get("Uploads", [])
    return found


def test_an_aborted_writer_of_many_parts_leaves_no_upload(s3_server: S3Server, s3: FsspecStore) -> None:
    writer = s3.open_writer("large")
    writer.write(b"x" * (33 << 20))
    assert len(uploads_of(s3_server, s3)) == 1
    writer.abort()
    assert uploads_of(s3_server, s3) == []
    assert list(s3.list()) == []


@pytest.mark.parametrize("service", ["s3", "azure"])
def test_a_large_object_is_written_in_parts_created_at_once_and_copied(
    request: pytest.FixtureRequest, service: str
) -> None:
    store: FsspecStore = request.getfixturevalue(service)
    piece = b"0123456789abcdef" * (1 << 16)
    with store.open_writer("large") as writer:
        for _ in range(20):
            writer.write(piece)
        assert not store.exists("large")
    assert store.size("large") == writer.tell() == 20 << 20
    assert store.get_range("large", (16 << 20) - 8, (16 << 20) + 8).to_pybytes() == b"89abcdef01234567"
    data = piece * 12
    assert store.put_if_absent("created", data) is PutOutcome.CREATED
    assert store.put_if_absent("created", data) is PutOutcome.EXISTS
    obstore_service._copy_in_parts(client_of(store), "data/large", "data/again")
    assert store.get("again") == store.get("large")


def test_an_object_too_large_for_a_copy_is_copied_in_parts(s3: FsspecStore, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[tuple[str, str]] = []
    monkeypatch.setattr(obstore_service, "_copy_in_parts", lambda _, source, target: copied.append((source, target)))

    class Refusing:
        def copy(self, source: str, target: str) -> None:
            raise RequestFailed("too large", status)

    status = 400
    s3._service.copy(Refusing(), "bucket/a", "bucket/b")
    assert copied == [("a", "b")]
    status = 403
    with pytest.raises(RequestFailed):
        s3._service.copy(Refusing(), "bucket/a", "bucket/b")
    assert len(copied) == 1
