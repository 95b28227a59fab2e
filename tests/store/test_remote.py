"""What object stores do that no other store does, and their packages."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from lance_ops.core.errors import ObjectNotFound, StoreError, UnsafeStore, WriteRefused
from lance_ops.store import FsspecStore, PutOutcome, remote
from lance_ops.store.services import ALL_SERVICES, Service, chosen_service, service_of
from lance_ops.store.services.obstore import listing
from lance_ops.store.services.s3 import S3
from tests.s3_server import S3Server
from tests.servers.gcs import GcsServer
from tests.servers.obstore import through_fsspec
from tests.store.conftest import ObjectServer, client_of


@pytest.fixture
def s3(s3_server: S3Server) -> FsspecStore:
    return through_fsspec(s3_server).new_store()


class Recorder:
    """A file system that keeps what it is asked, and answers with an error if it has one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[tuple[str, bytes, dict[str, Any]]] = []

    def pipe_file(self, key: str, data: bytes, **how: Any) -> None:
        self.asked.append((key, data, how))
        if self.error is not None:
            raise self.error


def client_error(status: int, code: str) -> OSError:
    """Return what s3fs raises: an OSError of the message alone, from botocore's error."""
    from botocore.exceptions import ClientError

    cause = ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")
    error = OSError(5, "At least one of the pre-conditions you specified did not hold")
    error.__cause__ = cause
    return error


OBJECT_STORES = [service for service in ALL_SERVICES if service.schemes != ("hdfs",)]


@pytest.mark.parametrize("service", OBJECT_STORES, ids=lambda service: service.package)
def test_a_create_is_one_exclusive_request(service: Any) -> None:
    fs = Recorder()
    data = b"x" * 1000
    service.create(fs, "bucket/key", data)

    ((key, sent, how),) = fs.asked
    assert (key, sent, how["mode"]) == ("bucket/key", data, "create")
    if service.package in ("s3fs", "gcsfs"):  # both split an upload by its size
        assert how["chunksize"] > len(data)
    with pytest.raises(FileExistsError):
        service.create(Recorder(FileExistsError("bucket/key")), "bucket/key", data)


def test_a_failed_condition_is_recognised_by_its_status_alone() -> None:
    with pytest.raises(FileExistsError):
        service_of("s3").create(Recorder(client_error(412, "PreconditionFailed")), "bucket/key", b"x")


@pytest.mark.parametrize(
    ("status", "code", "refused"),
    [
        (400, "InvalidRequest", True),
        (403, "AccessDenied", True),
        (404, "NoSuchBucket", True),
        (501, "NotImplemented", True),
        (409, "ConditionalRequestConflict", False),
        (408, "RequestTimeout", False),
        (429, "SlowDown", False),
        (500, "InternalError", False),
        (503, "SlowDown", False),
    ],
)
def test_only_a_final_answer_is_a_refusal(status: int, code: str, refused: bool) -> None:
    assert service_of("s3").is_refusal(client_error(status, code)) is refused
    assert service_of("az").is_refusal(type("HttpResponseError", (Exception,), {"status_code": status})()) is refused


def test_google_refusals_are_told_by_their_text() -> None:
    assert service_of("gs").is_refusal(OSError("Forbidden: https://storage.googleapis.com/…"))
    assert not service_of("gs").is_refusal(OSError("Connection reset"))


def test_a_file_system_without_an_atomic_create_reads_and_writes_but_does_not_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
    fsspec.register_implementation("elsewhere", MemoryFileSystem, clobber=True)
    store = FsspecStore("elsewhere://host/table")
    store.put("data/a", b"0123456789")
    with store.open_writer("data/b") as writer:
        writer.write(b"b")

    assert store.get("data/a").to_pybytes() == b"0123456789"
    assert [piece.to_pybytes() for piece in store.get_ranges("data/a", [(0, 2), (8, 10)])] == [b"01", b"89"]
    assert [(found.path, found.size_bytes) for found in store.list("data")] == [("data/a", 10), ("data/b", 1)]
    assert store.list_names("data") == ["a", "b"]
    assert store.now().tzinfo is UTC
    store.copy("data/a", "c")
    store.delete("data/a")
    store.delete("data/a")
    assert not store.exists("data/a")
    with pytest.raises(UnsafeStore, match="MemoryFileSystem has no atomic create"):
        store.put_if_absent("v/1", b"x")


def test_a_bucket_that_is_not_there_is_told_apart_from_a_commit_in_doubt(object_server: ObjectServer) -> None:
    scheme = object_server.new_uri().partition("://")[0]
    store = FsspecStore(f"{scheme}://no-such-bucket/a", object_server.storage_options)
    with pytest.raises(WriteRefused, match="no-such-bucket"):
        store.put_if_absent("v/1", b"x")
    with pytest.raises(WriteRefused):
        store.put("a", b"x")
    with pytest.raises(ObjectNotFound):
        store.get("a")
    assert list(store.list()) == []


def test_a_server_that_does_not_answer_is_a_store_error_and_no_refusal(object_server: ObjectServer) -> None:
    if isinstance(object_server, GcsServer):
        pytest.skip("gcsfs tries six times over half a minute, and nothing tells it otherwise")
    gone = replace(object_server, endpoint="http://127.0.0.1:1")
    store = FsspecStore(object_server.new_uri(), {**gone.storage_options, "client_max_retries": "0"})
    with pytest.raises(StoreError) as caught:
        store.put_if_absent("v/1", b"x")
    assert not isinstance(caught.value, WriteRefused | ObjectNotFound)


def test_a_forked_child_that_exits_as_any_program_does_is_not_held_up(object_server: ObjectServer) -> None:
    program = """
        import os, pickle, sys
        store = pickle.load(sys.stdin.buffer)
        store.put("a", b"parent")
        child = os.fork()
        if not child:
            assert store.get("a").to_pybytes() == b"parent"
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert store.get("a").to_pybytes() == b"parent"
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    subprocess.run(command, input=pickle.dumps(object_server.new_store()), check=True, timeout=120)


def test_listing_goes_on_past_a_page(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    store = object_server.new_store()
    modules = [sys.modules[kind.__module__] for kind in type(store._service).__mro__]
    monkeypatch.setattr(next(each for each in (*modules, listing) if hasattr(each, "_PAGE_NAMES")), "_PAGE_NAMES", 3)
    for index in range(10):
        store.put(f"v/{index}", b"")
    store.put("v/below/x", b"")

    assert store.list_names("v") == [str(index) for index in range(10)]
    assert store.list_names("v", limit=4) == ["0", "1", "2", "3"]
    assert len(list(store.list("v"))) == 11


@pytest.mark.server
def test_a_large_create_is_a_single_request(s3: FsspecStore) -> None:
    data = b"x" * (101 << 20)
    assert s3.put_if_absent("large", data) is PutOutcome.CREATED
    assert s3.put_if_absent("large", data) is PutOutcome.EXISTS
    etag = client_of(s3).info(s3._key("large"))["ETag"]
    assert "-" not in etag  # the mark of an upload in parts
    assert s3.get("large").size == len(data)


@pytest.mark.server
def test_a_writer_of_many_parts_is_one_object(s3: FsspecStore) -> None:
    piece = b"0123456789abcdef" * (1 << 16)
    with s3.open_writer("large") as writer:
        for _ in range(51):
            writer.write(piece)
        assert not s3.exists("large")
    assert s3.size("large") == writer.tell() == 51 << 20
    assert s3.get_range("large", (50 << 20) - 8, (50 << 20) + 8).to_pybytes() == b"89abcdef01234567"


@pytest.mark.server
def test_an_aborted_writer_of_many_parts_leaves_no_upload(s3: FsspecStore) -> None:
    writer = s3.open_writer("large")
    writer.write(b"x" * (51 << 20))
    uploads = {"Bucket": s3._key("x").partition("/")[0]}
    assert len(client_of(s3).call_s3("list_multipart_uploads", **uploads)["Uploads"]) == 1
    writer.abort()
    assert "Uploads" not in client_of(s3).call_s3("list_multipart_uploads", **uploads)


@pytest.mark.server
def test_far_ranges_are_separate_requests_and_near_ones_are_not(
    s3: FsspecStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put("a", bytes(range(256)) * 8192)
    asked: list[tuple[int, int]] = []
    fs = client_of(s3)
    cat_file = fs.cat_file

    def record(path: str, start: int, end: int) -> bytes:
        asked.append((start, end))
        return bytes(cat_file(path, start=start, end=end))

    monkeypatch.setattr(fs, "cat_file", record)
    found = s3.get_ranges("a", [(1 << 20, (1 << 20) + 4), (0, 4), (8, 12)])

    assert [piece.to_pybytes() for piece in found] == [bytes(range(4)), bytes(range(4)), bytes(range(8, 12))]
    assert sorted(asked) == [(0, 12), (1 << 20, (1 << 20) + 4)]
    assert remote._MAX_GAP_BYTES < 1 << 20

    asked.clear()
    chunks = [(at << 10, (at + 8) << 10) for at in (0, 74, 180)]  # a take's chunks of 8 KiB; gaps of 66 and 98 KiB
    assert [piece.size for piece in s3.get_ranges("a", chunks)] == [8 << 10] * 3
    assert sorted(asked) == [(0, 82 << 10), chunks[2]]


@pytest.mark.server
def test_a_read_chooses_its_client_once_however_many_ranges_it_has(
    s3: FsspecStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put("a", bytes(4 << 20))
    chosen: list[str] = []

    def choose(scheme: str, options: Mapping[str, object]) -> Service:
        chosen.append(scheme)
        return chosen_service(scheme, options)

    monkeypatch.setattr(remote, "chosen_service", choose)
    assert len(s3.get_ranges("a", [(0, 4), (1 << 20, 2 << 20), (3 << 20, 4 << 20)])) == 3
    assert chosen == ["s3"]
    assert [piece.size for piece in s3.get_ranges("a", [(5, 5)])] == [0]  # needs no client
    assert chosen == ["s3"]


@pytest.mark.server
@pytest.mark.parametrize("has_request", [True, False])
def test_several_objects_are_deleted_with_or_without_a_request_for_it(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, has_request: bool
) -> None:
    store, delete_several, asked = through_fsspec(s3_server).new_store(), S3.delete_several, list[int]()

    def watched(self: S3, fs: Any, keys: Sequence[str]) -> list[str]:
        asked.append(len(keys))
        if not has_request:
            raise NotImplementedError("POST ?delete")
        return delete_several(self, fs, keys)

    monkeypatch.setattr(S3, "delete_several", watched)
    for name in ("a", "dir/b c&d", "kept"):
        store.put(name, b"bytes")
    assert store.delete_several(["a", "dir/b c&d", "missing"]) == set()
    assert asked == [3]
    assert [info.path for info in store.list()] == ["kept"]


@pytest.mark.server
def test_objects_that_the_server_did_not_delete_are_returned(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = through_fsspec(s3_server).new_store()
    monkeypatch.setattr(S3, "delete_several", lambda self, fs, keys: [keys[1]])
    assert store.delete_several(["a", "b", "c"]) == {"b"}
