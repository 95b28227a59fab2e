"""Commits on HDFS by a rename that never replaces a file, its only atomic step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.core.errors import InvalidInput, StoreError, UnsafeStore
from lance_ops.store import FsspecStore, PutOutcome
from lance_ops.store.services import service_of
from tests.conformance.races import race_in_threads
from tests.servers.hdfs import renaming_store
from tests.store.conftest import client_of


@pytest.fixture
def store(tmp_path: Path) -> FsspecStore:
    return renaming_store(tmp_path / "root")


def test_a_table_is_written_and_read_on_hdfs(store: FsspecStore) -> None:
    uri, table = f"{store.uri}/table.lance", pa.table({"a": [1, 2, 3]})
    lance_ops.write_dataset(table, uri)
    dataset = lance_ops.write_dataset(table, uri, mode="append")
    dataset.delete("a = 2")
    dataset.optimize.compact_files()
    dataset.tags.create("kept")

    assert lance_ops.dataset(uri).to_table().column("a").to_pylist() == [1, 3, 1, 3]
    assert lance_ops.dataset(uri, version=2).count_rows() == 6
    assert lance_ops.dataset(uri, version="kept").count_rows() == 4
    assert list(store.list_temporary()) == []


def test_racing_writers_on_hdfs_lose_no_append_and_leave_no_gap(store: FsspecStore) -> None:
    uri = f"{store.uri}/table.lance"
    lance_ops.write_dataset(pa.table({"a": [-1]}), uri)

    def append(racer: int) -> int:
        return lance_ops.write_dataset(pa.table({"a": [racer]}), uri, mode="append").version

    assert sorted(race_in_threads(append, 8)) == list(range(2, 10))
    assert sorted(lance_ops.dataset(uri).to_table().column("a").to_pylist()) == list(range(-1, 8))


def test_a_rename_that_overwrites_is_refused(store: FsspecStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def overwrite(source: str, target: str) -> None:
        fs = client_of(store)
        fs.pipe_file(target, fs.cat_file(source))
        fs.rm_file(source)

    monkeypatch.setattr(client_of(store), "mv", overwrite)
    with pytest.raises(UnsafeStore, match="external manifest store"):
        PutIfAbsentCommitter(store).commit(1, b"manifest")


@pytest.mark.parametrize("renamed", [True, False])
def test_a_rename_whose_answer_is_lost_is_not_a_refusal(
    store: FsspecStore, monkeypatch: pytest.MonkeyPatch, renamed: bool
) -> None:
    mv = client_of(store).mv

    def lose(source: str, target: str) -> None:
        if renamed:
            mv(source, target)
        raise OSError("connection reset")

    with monkeypatch.context() as lossy:
        lossy.setattr(client_of(store), "mv", lose)
        with pytest.raises(StoreError, match="connection reset"):
            store.put_if_absent("v/1", b"ours")
    assert store.put_if_absent("v/1", b"theirs") is (PutOutcome.EXISTS if renamed else PutOutcome.CREATED)
    assert list(store.list_temporary()) == []


def test_host_port_and_options_are_passed_to_pyarrow() -> None:
    hdfs: Any = service_of("hdfs")
    assert hdfs.arguments("namenode:8020", {"user": "me"}) == {"host": "namenode", "port": 8020, "user": "me"}
    assert hdfs.arguments("", {}) == {}
    with pytest.raises(InvalidInput, match="port"):
        hdfs.arguments("namenode:x", {})
