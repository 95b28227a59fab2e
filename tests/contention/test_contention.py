"""Many writers on one table, ours and the reference's: what each was told is what the table holds."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import lance_ops
from tests.contention.evidence import check_history, check_rows, outcomes
from tests.contention.writer import SCHEMA, Orders
from tests.manifest_servers import dynamodb_table, etcd_server, postgres_server, redis_server
from tests.s3_server import S3Server

REPOSITORY = Path(__file__).parents[2]
ENOUGH_FOR_EVERY_KIND = 100
BOTH, OURS = ("lance_ops", "lance"), ("lance_ops",)


@dataclass(frozen=True)
class Place:
    """Where a table is and who can write it."""

    uri: str
    libraries: Sequence[str] = OURS
    storage_options: dict[str, str] = field(default_factory=dict)


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
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.contention.writer", order.to_json()],
            cwd=REPOSITORY,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for order in orders
    ]
    said = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * num_writers, "\n".join(said)

    dataset = lance_ops.dataset(place.uri, storage_options=place.storage_options)
    rows: dict[str, list[int]] = dataset.to_table().to_pydict()
    check_rows(list(zip(rows["writer"], rows["row"], rows["value"], strict=True)), logs)
    operations = check_history(dataset)
    ended = outcomes(logs.values())
    assert ended.total() == num_writers * num_commits
    assert ended["acknowledged"] > ended.total() / 2, ended
    kinds = {"Append", "Delete", "Update", "Rewrite"}
    assert kinds <= operations.keys() or ended.total() < ENOUGH_FOR_EVERY_KIND, operations
    if len(place.libraries) > 1:
        import lance

        theirs = lance.dataset(place.uri, storage_options=place.storage_options).to_table()
        assert theirs.sort_by([("writer", "ascending"), ("row", "ascending")]) == dataset.to_table().sort_by(
            [("writer", "ascending"), ("row", "ascending")]
        )


def _in(place: str, tmp_path: Path, s3_server: Callable[[], S3Server]) -> Place:
    if place == "local":
        return Place(str(tmp_path / "table.lance"), BOTH)
    if place == "s3":
        server = s3_server()
        return Place(f"s3://{server.new_bucket()}/table.lance", BOTH, server.storage_options)
    server = s3_server()
    table = dynamodb_table(server)
    name = table.url.removeprefix("dynamodb://")
    return Place(f"s3+ddb://{server.new_bucket()}/table.lance?ddbTableName={name}", BOTH, table.storage_options)


SHARED = ["local", pytest.param("s3", marks=pytest.mark.server), pytest.param("dynamodb", marks=pytest.mark.server)]
MANIFEST_SERVERS = {"postgresql": postgres_server, "redis": redis_server, "etcd": etcd_server}


@pytest.mark.interop
@pytest.mark.parametrize("place", SHARED)
def test_a_writer_of_each_library_keeps_what_it_was_promised(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    compete(_in(place, tmp_path, lambda: request.getfixturevalue("s3_server")), tmp_path, 2, 8)


@pytest.mark.soak
@pytest.mark.interop
@pytest.mark.parametrize("place", SHARED)
def test_sixteen_writers_of_both_libraries_keep_what_they_were_promised(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    compete(_in(place, tmp_path, lambda: request.getfixturevalue("s3_server")), tmp_path, 16, 50)


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
