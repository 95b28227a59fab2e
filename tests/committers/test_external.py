"""Commits through an external manifest store, stopped at each step, answered wrongly, and beside the reference's."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers import (
    Committed,
    Conflict,
    ExternalManifestCommitter,
    PutIfAbsentCommitter,
    Unknown,
    open_root,
)
from lance_ops.committers.create_retries import CreateRetries
from lance_ops.committers.manifest_stores import ManifestRow, ManifestStore, open_manifest_store, redis
from lance_ops.committers.manifest_stores.dynamodb import DynamoDbManifestStore
from lance_ops.committers.versions_directory import manifest_path
from lance_ops.core.errors import CorruptFile, InvalidInput, StoreError, UnsafeStore, VersionNotFound, WriteRefused
from lance_ops.core.file_names import VERSIONS_DIR, ManifestNaming
from lance_ops.maintenance.ingest import IngestBatch, IngestMode, IngestOptions, RawFile, ingest
from lance_ops.store import Fault, FaultyStore, LocalStore, SimulatedCrash, When
from lance_ops.store.process_resources import PROCESS_RESOURCES
from tests.manifest_servers import dynamodb_table, redis_server
from tests.s3_server import S3Server


@dataclass
class Rows(ManifestStore):
    """Rows of a real store. `answers` says what becomes of the next writes: `refused`, `lost`, `unsaid` or `crash`."""

    rows: ManifestStore
    answers: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, url: str, dataset_uri: str, storage_options: Mapping[str, object]) -> Self:
        return cls(open_manifest_store(url, dataset_uri, storage_options))

    def newest(self) -> ManifestRow | None:
        return self.rows.newest()

    def get(self, version: int) -> ManifestRow | None:
        return self.rows.get(version)

    def insert(self, row: ManifestRow) -> bool:
        answer = self._answer()
        inserted = self.rows.insert(row) if answer != "lost" else False
        if answer in ("lost", "unsaid"):
            raise StoreError("connection reset")
        return inserted

    def replace(self, row: ManifestRow) -> None:
        self._answer()
        self.rows.replace(row)

    def remove(self, version: int) -> None:
        self.rows.remove(version)

    def _answer(self) -> str | None:
        answer = self.answers.pop(0) if self.answers else None
        if answer == "refused":
            raise WriteRefused("not allowed to write")
        if answer == "crash":
            raise SimulatedCrash
        return answer


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "table"))


@pytest.fixture
def rows(tmp_path: Path, store: LocalStore) -> Rows:
    return Rows.open(f"sqlite:///{tmp_path}/rows.sqlite", store.uri, {})


@pytest.fixture
def committer(store: LocalStore, rows: Rows) -> ExternalManifestCommitter:
    return ExternalManifestCommitter(store, rows, retries=CreateRetries(3, 0.001))


def _files(store: LocalStore) -> list[str]:
    return sorted(info.path for info in store.list(VERSIONS_DIR))


def test_a_finished_commit_leaves_one_file_and_a_row_that_names_it(
    store: LocalStore, rows: Rows, committer: ExternalManifestCommitter
) -> None:
    assert committer.commit(1, b"one") == Committed(1, committer.location(1))
    assert _files(store) == [committer.location(1)]
    assert rows.get(1) == ManifestRow(1, committer.location(1), 3)


@pytest.mark.parametrize("operation", ["copy", "delete"])
@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER])
@pytest.mark.parametrize("reader", ["latest", "versions", "exists", "read"])
def test_a_reader_finishes_the_commit_of_a_writer_that_died_after_its_row(
    store: LocalStore, rows: Rows, operation: str, when: When, reader: str
) -> None:
    dying = FaultyStore(store, Fault(operation, when=when, crash=True))
    with pytest.raises(SimulatedCrash):
        ExternalManifestCommitter(dying, rows).commit(1, b"one")

    committer = ExternalManifestCommitter(store, rows)
    look: dict[str, Callable[[], bool]] = {
        "latest": lambda: committer.latest() == 1,
        "versions": lambda: committer.versions() == [1],
        "exists": lambda: committer.exists(1),
        "read": lambda: committer.read(1) == pa.py_buffer(b"one"),
    }
    assert look[reader]()
    assert committer.commit(1, b"other") == Conflict(1, pa.py_buffer(b"one"))
    assert isinstance(committer.commit(2, b"two"), Committed)
    assert committer.versions() == [1, 2]
    assert committer.read(1).to_pybytes() == b"one"


@pytest.mark.parametrize("step", ["insert", "replace"])
def test_a_writer_that_dies_at_its_row_leaves_a_whole_version_or_none(store: LocalStore, rows: Rows, step: str) -> None:
    rows.answers = ["crash"] if step == "insert" else ["", "crash"]
    with pytest.raises(SimulatedCrash):
        ExternalManifestCommitter(store, rows).commit(1, b"one")

    committer = ExternalManifestCommitter(store, rows)
    assert committer.latest() == (None if step == "insert" else 1)
    outcome = committer.commit(1, b"other")
    assert isinstance(outcome, Committed if step == "insert" else Conflict)
    assert committer.versions() == [1]


@pytest.mark.parametrize("answers", [["lost"], ["unsaid"], ["lost", "lost"], ["lost", "unsaid"]])
def test_the_outcome_of_a_lost_answer_is_found(
    store: LocalStore, rows: Rows, committer: ExternalManifestCommitter, answers: list[str]
) -> None:
    rows.answers = list(answers)

    outcome = committer.commit(1, b"ours")

    assert isinstance(outcome, Committed)
    assert outcome.recognised is (answers[-1] == "unsaid")
    assert committer.versions() == [1]
    assert _files(store) == [committer.location(1)]


def test_a_store_that_never_answers_leaves_the_outcome_unknown_and_all_files(
    store: LocalStore, rows: Rows, committer: ExternalManifestCommitter
) -> None:
    rows.answers = ["lost"] * 3
    assert isinstance(committer.commit(1, b"ours"), Unknown)
    assert [path.rpartition(".manifest-")[0] for path in _files(store)] == [
        committer.location(1).removesuffix(".manifest")
    ]


@pytest.mark.parametrize("refused", ["copy", "replace"])
def test_a_reader_without_the_right_to_write_reads_what_a_dead_writer_staged(
    store: LocalStore, rows: Rows, refused: str
) -> None:
    ExternalManifestCommitter(store, rows).commit(1, b"one")
    dying = FaultyStore(store, Fault("copy", crash=True))
    with pytest.raises(SimulatedCrash):
        ExternalManifestCommitter(dying, rows).commit(2, b"two")
    rows.answers = ["refused"] * 99 if refused == "replace" else []
    read_only = FaultyStore(store, *([Fault("copy", call=None)] if refused == "copy" else []))

    reader = ExternalManifestCommitter(read_only, rows)
    assert reader.latest() == 2 and reader.versions() == [1, 2]
    assert reader.exists(2) and reader.read(2).to_pybytes() == b"two"
    assert ExternalManifestCommitter(read_only, rows).read(2).to_pybytes() == b"two"
    with pytest.raises(WriteRefused, match="cannot finish version 2"):
        reader.commit(3, b"three")

    rows.answers = []
    assert isinstance(ExternalManifestCommitter(store, rows).commit(3, b"three"), Committed)


def test_clean_up_keeps_the_staged_manifest_that_is_a_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, options = str(tmp_path / "table"), {"manifest_store": f"sqlite:///{tmp_path}/rows.sqlite"}
    finish = ExternalManifestCommitter._finish

    def without_the_right_to_write(committer: ExternalManifestCommitter, row: ManifestRow) -> bool:
        if not row.path.endswith(".manifest"):
            raise StoreError("not allowed to write")
        return finish(committer, row)

    for start in (0, 10):
        lance_ops.write_dataset(pa.table({"x": range(start, start + 10)}), uri, mode="append", storage_options=options)
    left = manifest_path(3, ManifestNaming.V2) + f"-{uuid.uuid4()}"
    with monkeypatch.context() as patched:
        patched.setattr(ExternalManifestCommitter, "_finish", without_the_right_to_write)
        lance_ops.write_dataset(pa.table({"x": range(20, 30)}), uri, mode="append", storage_options=options)
        LocalStore(uri).put(left, b"of a writer that crashed")
        newest = lance_ops.dataset(uri, storage_options=options)
        assert newest.cleanup_old_versions(retain_versions=1, delete_unverified=True).old_versions == 2
    assert not LocalStore(uri).exists(left)
    assert lance_ops.dataset(uri, storage_options=options).count_rows() == 30


def test_a_writer_finishes_the_version_before_its_own_once_it_can(store: LocalStore, rows: Rows) -> None:
    with pytest.raises(SimulatedCrash):
        ExternalManifestCommitter(FaultyStore(store, Fault("copy", crash=True)), rows).commit(1, b"one")
    writer = ExternalManifestCommitter(FaultyStore(store, Fault("copy")), rows)
    assert writer.latest() == 1 and _files(store) != [writer.location(1)]

    assert isinstance(writer.commit(2, b"two"), Committed)
    assert _files(store) == [writer.location(2), writer.location(1)]


def test_a_commit_whose_staged_manifest_was_removed_is_no_success(store: LocalStore, rows: Rows) -> None:
    insert = rows.insert
    ExternalManifestCommitter(store, rows).commit(1, b"one")

    def and_lose_the_manifest(row: ManifestRow) -> bool:
        inserted = insert(row)
        store.delete(row.path)
        return inserted

    rows.insert = and_lose_the_manifest  # type: ignore[method-assign] # a moment that nothing else shows
    committer = ExternalManifestCommitter(store, rows)
    assert isinstance(committer.commit(2, b"two"), Unknown)
    assert committer.latest() == 1 and committer.versions() == [1]


def test_its_outcome_is_unknown_also_if_its_row_stays(
    store: LocalStore, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("the database is gone")

    committer = ExternalManifestCommitter(store, rows)
    monkeypatch.setattr(committer, "_finish", lambda row: False)
    monkeypatch.setattr(rows, "remove", refuse)
    assert isinstance(committer.commit(1, b"one"), Unknown)


def test_a_newest_row_without_a_manifest_is_corrupt(store: LocalStore, rows: Rows) -> None:
    ExternalManifestCommitter(store, rows).commit(1, b"one")
    rows.insert(ManifestRow(2, f"{manifest_path(2, ManifestNaming.V2)}-{uuid.uuid4()}", 3))
    committer = ExternalManifestCommitter(store, rows)
    with pytest.raises(CorruptFile, match="row of version 2"):
        committer.latest()
    assert committer.versions() == [1] and not committer.exists(2)
    with pytest.raises(VersionNotFound):
        committer.read(2)


def test_a_refusal_and_a_lost_race_leave_no_staged_manifest(
    store: LocalStore, rows: Rows, committer: ExternalManifestCommitter
) -> None:
    rows.answers = ["refused"]
    with pytest.raises(WriteRefused, match="not allowed"):
        committer.commit(1, b"ours")
    assert _files(store) == []

    ExternalManifestCommitter(store, rows).commit(1, b"theirs")
    assert isinstance(committer.commit(1, b"ours"), Conflict)
    assert _files(store) == [committer.location(1)]


def test_a_manifest_that_cannot_be_staged_is_refused(store: LocalStore, rows: Rows) -> None:
    broken = FaultyStore(store, Fault("put", call=None))
    with pytest.raises(WriteRefused, match="staged"):
        ExternalManifestCommitter(broken, rows).commit(1, b"ours")
    assert rows.get(1) is None


def test_a_removed_version_is_never_made_again(committer: ExternalManifestCommitter, store: LocalStore) -> None:
    for version in (1, 2):
        committer.commit(version, b"%d" % version)
    committer.remove(1)

    with pytest.raises(WriteRefused, match="clean-up removed it"):
        committer.commit(1, b"late")
    assert committer.versions() == [2]
    assert _files(store) == [committer.location(2)]


def test_a_version_that_may_have_been_ours_and_was_removed_since_is_unknown(store: LocalStore, rows: Rows) -> None:
    """The answer to the insert is lost; others finish the version, go on from it, and clean it up."""

    committer = ExternalManifestCommitter(store, rows, retries=CreateRetries(3, 0.001))
    get, gone = rows.rows.get, False

    def and_others(version: int) -> ManifestRow | None:
        nonlocal gone
        if get(version) is not None and not gone:
            gone = True
            others = ExternalManifestCommitter(store, rows.rows)
            assert others.latest() == 1
            others.commit(2, b"built on it")
            others.remove(1)
        return get(version)

    rows.get = and_others  # type: ignore[method-assign] # a moment that nothing else shows
    rows.answers = ["unsaid"]

    assert isinstance(committer.commit(1, b"ours"), Unknown)


def test_versions_older_than_the_manifest_store_are_valid(store: LocalStore, rows: Rows) -> None:
    before = PutIfAbsentCommitter(store)
    for version in (1, 2):
        before.commit(version, b"%d" % version)

    committer = ExternalManifestCommitter(store, rows)
    assert committer.latest() == 2
    assert committer.commit(2, b"other") == Conflict(2, pa.py_buffer(b"2"))
    assert isinstance(committer.commit(3, b"3"), Committed)
    assert committer.versions() == [1, 2, 3]
    assert committer.read(1).to_pybytes() == b"1"


def test_a_row_that_names_something_else_is_corrupt(committer: ExternalManifestCommitter, rows: Rows) -> None:
    rows.insert(ManifestRow(1, "../elsewhere.manifest", 3))
    with pytest.raises(CorruptFile, match="row of version 1"):
        committer.latest()


def test_error_messages_show_no_password(tmp_path: Path) -> None:
    url = "postgresql+psycopg://user:hunter22@127.0.0.1:1/none?connect_timeout=1"
    root = open_root(str(tmp_path / "t"), {"manifest_store": url})
    with pytest.raises(StoreError) as raised:
        root.committer.latest()
    shown = f"{raised.value!r} {root!r} {raised.value.__cause__!r}"
    assert "hunter22" not in shown


@pytest.mark.server
def test_a_redis_that_may_lose_writes_is_refused(tmp_path: Path, store: LocalStore) -> None:
    with redis_server(tmp_path, durable=False) as server:
        committer = ExternalManifestCommitter(store, open_manifest_store(server.url, store.uri, {}))
        with pytest.raises(UnsafeStore, match="appendfsync"):
            committer.commit(1, b"one")
    assert _files(store) == []


def test_dynamodb_uses_the_connection_settings_of_the_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROCESS_RESOURCES, "client", lambda key, make: make())
    options = {"region": "us-east-1", "request_timeout": "7s", "client_max_retries": "2", "proxy_url": "http://proxy:1"}
    store = open_manifest_store("dynamodb://rows", "s3://bucket/table", options)
    assert isinstance(store, DynamoDbManifestStore)
    with store._client() as client:
        config = client.meta.config
    assert (config.read_timeout, config.retries["total_max_attempts"]) == (7.0, 3)
    assert config.proxies == {"http": "http://proxy:1", "https": "http://proxy:1"}


def test_a_redis_that_does_not_answer_times_out(monkeypatch: pytest.MonkeyPatch, store: LocalStore) -> None:
    monkeypatch.setattr(redis, "_TIMEOUT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        rows = open_manifest_store(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", store.uri, {})
        with pytest.raises(StoreError, match="Timeout"):
            rows.newest()


def test_a_dynamodb_uri_without_a_table_is_invalid_input() -> None:
    with pytest.raises(InvalidInput, match="ddbTableName"):
        open_root("s3+ddb://bucket/table.lance")


@pytest.mark.server
@pytest.mark.parametrize("mode", [IngestMode.UPSERT, IngestMode.HISTORY])
def test_batches_are_merged_by_key_into_the_table_of_a_dynamodb_uri(
    mode: IngestMode, s3_server: S3Server, tmp_path: Path
) -> None:
    options = dynamodb_table(s3_server)
    uri = f"s3+ddb://{s3_server.new_bucket()}/t.lance?ddbTableName={options.url.removeprefix('dynamodb://')}"
    for number in range(2):
        path = tmp_path / f"{number}.csv"
        path.write_text(f"id,valid_from,v\n7,{number},{number}\n")
        batch = IngestBatch(path.name, (RawFile(str(path), path.stat().st_size, "t"),))
        by_key = IngestOptions(mode=mode, keys=("id",))
        assert ingest(uri, [batch], storage_options=options.storage_options, options=by_key).ingested == (path.name,)
    found = lance_ops.dataset(uri, storage_options=options.storage_options)
    assert sorted(found.to_table()["valid_from"].to_pylist()) == ([1] if mode is IngestMode.UPSERT else [0, 1])


@pytest.mark.server
@pytest.mark.interop
@pytest.mark.parametrize("server", ["moto", "dynalite"])
def test_pylance_and_we_share_a_dynamodb_table(
    server: str, s3_server: S3Server, request: pytest.FixtureRequest
) -> None:
    import lance

    options = dynamodb_table(s3_server) if server == "moto" else request.getfixturevalue("dynalite")()
    uri = f"s3+ddb://{s3_server.new_bucket()}/some/table.lance?ddbTableName={options.url.removeprefix('dynamodb://')}"
    table = pa.table({"a": [1, 2]})
    lance_ops.write_dataset(table, uri, storage_options=options.storage_options)
    lance.write_dataset(table, uri, mode="append", storage_options=options.storage_options)
    ours = lance_ops.dataset(uri, storage_options=options.storage_options)
    ours.delete("a = 1")
    theirs = lance.dataset(uri, storage_options=options.storage_options)
    theirs.delete("a = 2")

    ours, theirs = (library.dataset(uri, storage_options=options.storage_options) for library in (lance_ops, lance))
    assert ours.version == theirs.version == 4
    assert ours.count_rows() == theirs.count_rows() == 0
    assert [row["version"] for row in ours.versions()] == [row["version"] for row in theirs.versions()] == [1, 2, 3, 4]
    rows = open_manifest_store(options.url, uri.replace("+ddb", "").partition("?")[0], options.storage_options)
    assert [row and row.path.endswith(".manifest") for row in map(rows.get, range(1, 6))] == [True] * 4 + [None]
