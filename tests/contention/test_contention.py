"""Many writers on one table, ours and the reference's: what each was told is what the table holds."""

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
from tests.contention.evidence import check_history, check_rows, read_history, read_log, table_of
from tests.contention.writer import SCHEMA, Orders
from tests.contention.writer import main as work
from tests.manifest_servers import ManifestServer, etcd_server, postgres_server, redis_server
from tests.servers.hdfs import renaming_store

REPOSITORY = Path(__file__).parents[2]
ENOUGH_FOR_EVERY_KIND = 100
MOST_SECONDS_TO_OPEN = 300
LEAST_ACKNOWLEDGED = {"lance_ops": 1 / 2, "lance": 1 / 4}
"""Of the commits of each library; among 16 writers the reference gives up sooner than this one does."""
BOTH, OURS = ("lance_ops", "lance"), ("lance_ops",)


@dataclass(frozen=True)
class Place:
    """Where a table is and who can write it; what only this process can reach is written by its threads."""

    uri: str
    libraries: Sequence[str] = OURS
    storage_options: dict[str, str] = field(default_factory=dict)
    in_threads: bool = False


def compete(place: Place, folder: Path, num_writers: int, num_commits: int) -> None:
    """Let writers loose on a new table, and hold the table against what they were told."""
    create = lance_ops.write_dataset(SCHEMA.empty_table(), place.uri, storage_options=place.storage_options)
    assert create.version == 1
    logs = {writer: folder / f"{writer}.log" for writer in range(num_writers)}
    libraries = [place.libraries[writer % len(place.libraries)] for writer in logs]
    orders = [
        Orders(library, place.uri, writer, num_commits, str(log), place.storage_options)
        for library, (writer, log) in zip(libraries, logs.items(), strict=True)
    ]
    if place.in_threads:
        gate = threading.Barrier(num_writers, timeout=MOST_SECONDS_TO_OPEN)
        with ThreadPoolExecutor(num_writers) as writers:
            list(writers.map(lambda order: work(order, gate.wait), orders))
    else:
        _run_processes(orders)

    said = {writer: read_log(path, writer) for writer, path in logs.items()}
    dataset = lance_ops.dataset(place.uri, storage_options=place.storage_options)
    history = read_history(dataset, folder / "copy")
    table = table_of(dataset.to_table())
    check_rows(table, said)
    check_history(history, said)
    assert history.table == table
    if "lance" in place.libraries:
        import lance

        theirs = lance.dataset(place.uri, storage_options=place.storage_options)
        assert table_of(theirs.to_table()) == table

    for library in place.libraries:
        entries = [entry for by, log in zip(libraries, said.values(), strict=True) if by == library for entry in log]
        ended = Counter(entry.outcome for entry in entries)
        print(f"{library}: {dict(ended)}, {history.libraries[library]} versions")  # `pytest -rP` shows it
        assert ended.total() == num_commits * libraries.count(library)
        assert ended["acknowledged"] > ended.total() * LEAST_ACKNOWLEDGED[library], ended
        changes = sum(entry.outcome == "acknowledged" and bool(entry.change) for entry in entries)
        assert history.libraries[library] >= changes
    kinds = {"Append", "Delete", "Update", "Rewrite"}
    assert kinds <= history.operations.keys() or num_writers * num_commits < ENOUGH_FOR_EVERY_KIND, history.operations


def _run_processes(orders: Sequence[Orders]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.contention.writer", order.to_json()],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for order in orders
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # one that died says why below
            process.stdin.write("\n")
            process.stdin.flush()
    said = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(orders), "\n".join(said)


def _in(place: str, folder: Path, fixture: Callable[[str], Any]) -> Place:
    match place:
        case "local":
            return Place(str(folder / "table.lance"), BOTH)
        case "memory":
            return Place(f"memory://{uuid.uuid4().hex}", in_threads=True)
        case "hdfs":
            return Place(renaming_store(folder / "hdfs").uri, in_threads=True)
        case "dynamodb":
            table: ManifestServer = fixture("dynalite")()
            bucket = fixture("s3_server").new_bucket()
            name = table.url.removeprefix("dynamodb://")
            return Place(f"s3+ddb://{bucket}/table.lance?ddbTableName={name}", BOTH, table.storage_options)
    server = fixture(f"{place}_server")
    # Of the protocol that the reference speaks to Google, the server here has the reading half.
    return Place(server.new_uri("table.lance"), OURS if place == "gcs" else BOTH, server.storage_options)


PLACES = [
    *("local", "memory", "hdfs"),
    *(pytest.param(place, marks=pytest.mark.server) for place in ("s3", "azure", "gcs", "dynamodb")),
]
MANIFEST_SERVERS = {"postgresql": postgres_server, "redis": redis_server, "etcd": etcd_server}


@pytest.mark.interop
@pytest.mark.parametrize("place", PLACES)
def test_two_writers_keep_what_they_were_promised(place: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    compete(_in(place, tmp_path, request.getfixturevalue), tmp_path, 2, 8)


@pytest.mark.soak
@pytest.mark.interop
@pytest.mark.parametrize("place", PLACES)
def test_sixteen_writers_keep_what_they_were_promised(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    compete(_in(place, tmp_path, request.getfixturevalue), tmp_path, 16, 50)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", *MANIFEST_SERVERS])
def test_sixteen_writers_on_a_manifest_store_keep_what_they_were_promised(kind: str, tmp_path: Path) -> None:
    uri = str(tmp_path / f"{uuid.uuid4().hex}.lance")
    if kind == "sqlite":
        compete(Place(uri, storage_options={"manifest_store": f"sqlite:///{tmp_path}/rows.sqlite"}), tmp_path, 16, 50)
        return
    home = tmp_path / kind
    home.mkdir()
    with MANIFEST_SERVERS[kind](home) as server:
        compete(Place(uri, storage_options={"manifest_store": server.url}), tmp_path, 16, 50)
