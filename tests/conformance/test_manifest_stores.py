"""Conformance tests of every external manifest store."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import uuid
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers.manifest_stores import ALL_MANIFEST_STORES, ManifestRow, ManifestStore, open_manifest_store
from lance_ops.core.errors import InvalidInput, LanceOpsError, StoreError
from tests.conformance.conftest import MANIFEST_STORES, SERVERS
from tests.conformance.races import NUM_RACERS, PRELOADED, race_in_processes, race_in_threads
from tests.manifest_servers import ManifestServer

# moto's DynamoDB may tell two racers that both were first: it has no lock between its check and its write.
RACED = [store for store in MANIFEST_STORES if store.values != ("dynamodb",)]


@pytest.fixture
def dataset_uri() -> str:
    return f"s3://bucket/{uuid.uuid4().hex}/table.lance"


@pytest.fixture
def rows(manifest_server: ManifestServer, dataset_uri: str) -> ManifestStore:
    return _open(manifest_server, dataset_uri)


def _open(server: ManifestServer, dataset_uri: str) -> ManifestStore:
    return open_manifest_store(server.url, dataset_uri, server.storage_options)


def test_a_dataset_without_rows_has_no_versions(rows: ManifestStore) -> None:
    assert rows.newest() is None
    assert rows.get(1) is None


def test_a_version_is_inserted_once_and_may_be_replaced(rows: ManifestStore) -> None:
    first, other, last = (ManifestRow(7, path, size) for path, size in (("a", 1), ("b", 2), ("c", (1 << 40))))

    assert rows.insert(first)
    assert not rows.insert(other)
    assert rows.get(7) == rows.newest() == first
    rows.replace(last)
    assert rows.get(7) == rows.newest() == last
    assert not rows.insert(first)


def test_a_removed_row_is_gone_and_can_be_inserted_again(rows: ManifestStore) -> None:
    for version in (1, 2, 10):
        rows.insert(ManifestRow(version, f"of {version}", version))
    rows.remove(10)
    rows.remove(10)

    assert rows.get(10) is None
    assert rows.newest() == rows.get(2) == ManifestRow(2, "of 2", 2)
    assert rows.insert(ManifestRow(10, "again", 1))


def test_the_newest_is_the_greatest_number_not_the_last_inserted(rows: ManifestStore) -> None:
    for version in (9, 100, 10, (1 << 63) - 1, 2):
        rows.insert(ManifestRow(version, f"of {version}", version % 1000))

    newest = rows.newest()
    assert newest is not None and newest.version == (1 << 63) - 1
    assert newest == rows.get((1 << 63) - 1)
    assert rows.get(11) is None


def test_a_row_that_was_removed_is_not_replaced(rows: ManifestStore) -> None:
    rows.insert(ManifestRow(1, "a", 1))
    rows.insert(ManifestRow(2, "b", 1))
    rows.remove(2)

    with pytest.raises(StoreError):
        rows.replace(ManifestRow(2, "late", 1))
    assert rows.get(2) is None and rows.newest() == ManifestRow(1, "a", 1)
    assert rows.insert(ManifestRow(2, "again", 1))


OTHER_NAMES = ["A", "a2", "a#2", "a?2", "a/x", "a/0", "a/0/x", "a/00000000000000000009x", "a/2024/t.lance"]


@pytest.mark.parametrize("other", OTHER_NAMES)
def test_datasets_do_not_see_each_other(manifest_server: ManifestServer, dataset_uri: str, other: str) -> None:
    ours, theirs = _open(manifest_server, f"{dataset_uri}/a"), _open(manifest_server, f"{dataset_uri}/{other}")
    assert theirs.insert(ManifestRow(5, "theirs", 1))
    assert ours.newest() is None
    assert ours.insert(ManifestRow(1, "ours", 1))
    assert ours.newest() == ManifestRow(1, "ours", 1)
    assert theirs.newest() == ManifestRow(5, "theirs", 1)


def test_a_pickle_opens_the_same_rows_and_shows_no_secret(rows: ManifestStore) -> None:
    rows.insert(ManifestRow(1, "a", 1))
    assert pickle.loads(pickle.dumps(rows)).newest() == ManifestRow(1, "a", 1)
    assert "test-secret-key" not in repr(rows)


def _insert(server: ManifestServer, dataset_uri: str, a_round: int, racer: int) -> bool:
    return _open(server, dataset_uri).insert(ManifestRow(a_round + 1, f"of {racer}", racer))


@pytest.mark.parametrize("manifest_server", RACED, indirect=True)
def test_of_racing_threads_one_inserts(manifest_server: ManifestServer, dataset_uri: str) -> None:
    for a_round in range(3):
        answers = race_in_threads(partial(_insert, manifest_server, dataset_uri, a_round))
        assert sorted(answers) == [False] * (NUM_RACERS - 1) + [True]
        assert _open(manifest_server, dataset_uri).get(a_round + 1) == ManifestRow(
            a_round + 1, f"of {answers.index(True)}", answers.index(True)
        )


@pytest.mark.parametrize("manifest_server", RACED, indirect=True)
def test_of_racing_processes_one_inserts(manifest_server: ManifestServer, dataset_uri: str) -> None:
    rounds = race_in_processes(partial(_insert, manifest_server, dataset_uri), 3, 4)
    assert [sorted(answers) for answers in rounds] == [[False, False, False, True]] * 3


def test_what_racers_import_once_is_there() -> None:
    assert [name for name in PRELOADED if find_spec(name) is None] == []  # a wrong name would only make them slow


def _use_in_child(rows: ManifestStore, answers: Any) -> None:
    try:
        answers.put((rows.get(1), rows.insert(ManifestRow(1, "child", 1)), rows.insert(ManifestRow(2, "child", 2))))
        gc.collect()
    except LanceOpsError as error:
        answers.put(repr(error))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # forking beside threads is what is tested
def test_a_forked_child_and_its_parent_both_use_the_store(rows: ManifestStore) -> None:
    parents = ManifestRow(1, "parent", 1)
    assert rows.insert(parents)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    children = [context.Process(target=_use_in_child, args=(rows, answers)) for _ in range(2)]
    for child in children:
        child.start()
    said = [answers.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    answers.close()
    answers.join_thread()

    assert sorted(said, key=str) == [(parents, False, False), (parents, False, True)]
    assert [child.exitcode for child in children] == [0, 0]
    assert rows.newest() == ManifestRow(2, "child", 2)
    assert rows.insert(ManifestRow(3, "parent", 3))


def test_a_dataset_commits_through_a_manifest_store(manifest_server: ManifestServer, tmp_path: Path) -> None:
    options = {"manifest_store": manifest_server.url, **manifest_server.storage_options}
    uri = str(tmp_path / f"{uuid.uuid4().hex}.lance")
    table = pa.table({"a": [1, 2, 3]})
    lance_ops.write_dataset(table, uri, storage_options=options)
    dataset = lance_ops.write_dataset(table, uri, mode="append", storage_options=options)
    dataset.delete("a = 2")
    dataset.optimize.compact_files()

    again = lance_ops.dataset(uri, storage_options=options)
    assert again.to_table().column("a").to_pylist() == [1, 3, 1, 3]
    assert [row["version"] for row in again.versions()] == list(range(1, again.version + 1))
    newest = open_manifest_store(manifest_server.url, uri, manifest_server.storage_options).newest()
    assert newest is not None and newest.version == again.version


def test_this_suite_runs_over_every_manifest_store() -> None:
    tried = {"sqlite", "dynamodb", *SERVERS}
    assert all(tried.intersection(schemes) for schemes in ALL_MANIFEST_STORES.values())


@pytest.mark.parametrize(
    "url", ["", "nonsense", "ftp://host", "dynamodb://", "etcd://", "etcd://a:b@host", "redis://h:x"]
)
def test_a_url_that_names_no_manifest_store_is_invalid_input(url: str) -> None:
    with pytest.raises(InvalidInput, match="manifest_store"):
        open_manifest_store(url, "s3://bucket/t.lance", {})
