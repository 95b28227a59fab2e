"""Many writers, of this library and the reference, commit to one table; it holds what each of them was told."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import lance_ops
from tests.contention.history_checks import check_history, check_rows, read_history, read_log, table_of
from tests.contention.writer import SCHEMA, WriterTask
from tests.contention.writer import main as work
from tests.manifest_servers import ManifestServer, etcd_server, postgres_server, redis_server
from tests.servers.hdfs import renaming_store

pytestmark = pytest.mark.usefixtures("on_disk")

REPOSITORY = Path(__file__).parents[2]
COMMITS_FOR_ALL_OPERATIONS = 100
MAX_SECONDS_TO_OPEN = 300
MIN_SHARE_ACKNOWLEDGED = {"lance_ops": 1 / 2, "lance": 1 / 4}
"""The share of commits that must succeed; among 16 writers the reference gives up earlier than this library."""
BOTH, OURS = ("lance_ops", "lance"), ("lance_ops",)


@dataclass(frozen=True)
class TableUnderTest:
    """The URI of a table and the libraries that can write it; `in_threads` if only this process can reach it."""

    uri: str
    libraries: Sequence[str] = OURS
    storage_options: dict[str, str] = field(default_factory=dict)
    in_threads: bool = False


def compete(place: TableUnderTest, folder: Path, num_writers: int, num_commits: int) -> None:
    """Run concurrent writers on a new table, and compare the table with their logs."""
    create = lance_ops.write_dataset(SCHEMA.empty_table(), place.uri, storage_options=place.storage_options)
    assert create.version == 1
    logs = {writer: folder / f"{writer}.log" for writer in range(num_writers)}
    libraries = [place.libraries[writer % len(place.libraries)] for writer in logs]
    tasks = [
        WriterTask(library, place.uri, writer, num_commits, str(log), place.storage_options)
        for library, (writer, log) in zip(libraries, logs.items(), strict=True)
    ]
    if place.in_threads:
        gate = threading.Barrier(num_writers, timeout=MAX_SECONDS_TO_OPEN)
        with ThreadPoolExecutor(num_writers) as writers:
            list(writers.map(lambda task: work(task, gate.wait), tasks))
    else:
        _run_processes(tasks)

    writer_logs = {writer: read_log(path, writer) for writer, path in logs.items()}
    dataset = lance_ops.dataset(place.uri, storage_options=place.storage_options)
    history = read_history(dataset, folder / "copy")
    table = table_of(dataset.to_table())
    check_rows(table, writer_logs)
    check_history(history, writer_logs)
    assert history.table == table
    if "lance" in place.libraries:
        import lance

        theirs = lance.dataset(place.uri, storage_options=place.storage_options)
        assert table_of(theirs.to_table()) == table

    for library in place.libraries:
        entries = [
            entry for by, log in zip(libraries, writer_logs.values(), strict=True) if by == library for entry in log
        ]
        ended = Counter(entry.outcome for entry in entries)
        print(f"{library}: {dict(ended)}, {history.libraries[library]} versions")  # shown by `pytest -rP`
        assert ended.total() == num_commits * libraries.count(library)
        assert ended["acknowledged"] > ended.total() * MIN_SHARE_ACKNOWLEDGED[library], ended
        changes = sum(entry.outcome == "acknowledged" and bool(entry.change) for entry in entries)
        assert history.libraries[library] >= changes
    kinds = {"Append", "Delete", "Update", "Rewrite"}
    assert kinds <= history.operations.keys() or num_writers * num_commits < COMMITS_FOR_ALL_OPERATIONS, (
        history.operations
    )


def _run_processes(tasks: Sequence[WriterTask]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.contention.writer", task.to_json()],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for task in tasks
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # the assertion below shows why a writer died
            process.stdin.write("\n")
            process.stdin.flush()
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(tasks), "\n".join(errors)


def _table_at(place: str, folder: Path, fixture: Callable[[str], Any]) -> TableUnderTest:
    match place:
        case "local":
            return TableUnderTest(str(folder / "table.lance"), BOTH)
        case "memory":
            return TableUnderTest(f"memory://{uuid.uuid4().hex}", in_threads=True)
        case "hdfs":
            return TableUnderTest(renaming_store(folder / "hdfs").uri, in_threads=True)
        case "dynamodb":
            table: ManifestServer = fixture("dynalite")()
            bucket = fixture("s3_server").new_bucket()
            name = table.url.removeprefix("dynamodb://")
            return TableUnderTest(f"s3+ddb://{bucket}/table.lance?ddbTableName={name}", BOTH, table.storage_options)
    server = fixture(f"{place}_server")
    # The test server has only the read requests of the protocol that the reference uses for Google.
    return TableUnderTest(server.new_uri("table.lance"), OURS if place == "gcs" else BOTH, server.storage_options)


PLACES = [
    *("local", "memory", "hdfs"),
    *(pytest.param(place, marks=pytest.mark.server) for place in ("s3", "azure", "gcs", "dynamodb")),
]
MANIFEST_SERVERS = {"postgresql": postgres_server, "redis": redis_server, "etcd": etcd_server}


@pytest.mark.interop
@pytest.mark.parametrize("place", PLACES)
def test_commits_of_two_writers_are_all_accounted_for(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    compete(_table_at(place, tmp_path, request.getfixturevalue), tmp_path, 2, 8)


@pytest.mark.soak
@pytest.mark.interop
@pytest.mark.parametrize("place", PLACES)
def test_commits_of_sixteen_writers_are_all_accounted_for(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    compete(_table_at(place, tmp_path, request.getfixturevalue), tmp_path, 16, 50)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", *MANIFEST_SERVERS])
def test_commits_of_sixteen_writers_to_a_manifest_store_are_all_accounted_for(kind: str, tmp_path: Path) -> None:
    uri = str(tmp_path / f"{uuid.uuid4().hex}.lance")
    if kind == "sqlite":
        compete(
            TableUnderTest(uri, storage_options={"manifest_store": f"sqlite:///{tmp_path}/rows.sqlite"}),
            tmp_path,
            16,
            50,
        )
        return
    home = tmp_path / kind
    home.mkdir()
    with MANIFEST_SERVERS[kind](home) as server:
        compete(TableUnderTest(uri, storage_options={"manifest_store": server.url}), tmp_path, 16, 50)
