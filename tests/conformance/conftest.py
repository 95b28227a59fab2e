"""Fixtures: an empty store and an empty dataset for every kind of store and committer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from lance_ops.committers import Committer, ExternalManifestCommitter, PutIfAbsentCommitter
from lance_ops.committers.manifest_stores import open_manifest_store
from lance_ops.store import FaultyStore, LocalStore, MemoryStore, Store
from tests.manifest_servers import ManifestServer, dynamodb_table, etcd_server, postgres_server, redis_server
from tests.s3_server import S3Server
from tests.servers.hdfs import renaming_store
from tests.servers.obstore import OBJECT_SERVERS, object_server_of

SERVERS = {"postgresql": postgres_server, "redis": redis_server, "etcd": etcd_server}

STORES = [
    pytest.param("local"),
    pytest.param("memory"),
    pytest.param("faulty"),
    pytest.param("hdfs"),
    *(pytest.param(service, marks=pytest.mark.server) for service in OBJECT_SERVERS),
]

MANIFEST_STORES = [
    pytest.param("sqlite"),
    *(pytest.param(kind, marks=pytest.mark.server) for kind in (*SERVERS, "dynamodb", "dynalite")),
]


def _in_store(folder: str, store: Store) -> Committer:
    return PutIfAbsentCommitter(store)


def _in_sqlite(folder: str, store: Store) -> Committer:
    rows = open_manifest_store(f"sqlite:///{folder}/rows.sqlite", store.uri, {})
    return ExternalManifestCommitter(store, rows)


COMMITTERS: dict[type[Committer], Callable[[str, Store], Committer]] = {
    PutIfAbsentCommitter: _in_store,
    ExternalManifestCommitter: _in_sqlite,
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    make: dict[str, Callable[[], Store]] = {
        "local": lambda: LocalStore(str(tmp_path / "root")),
        "memory": MemoryStore,
        "faulty": lambda: FaultyStore(LocalStore(str(tmp_path / "root"))),
        "hdfs": lambda: renaming_store(tmp_path / "root"),
    }
    if request.param not in make:
        return object_server_of(request, request.param).new_store()
    return make[request.param]()


@pytest.fixture(params=COMMITTERS.values(), ids=[kind.__name__ for kind in COMMITTERS])
def make_committer(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Store], Committer]:
    """Return how to make one kind of committer; it pickles."""
    return partial(request.param, str(tmp_path))


@pytest.fixture
def new_committer(make_committer: Callable[[Store], Committer], store: Store) -> Callable[[], Committer]:
    """Return a function that makes new handles on one dataset that does not exist yet."""
    return lambda: make_committer(store)


@pytest.fixture(scope="session")
def manifest_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], ManifestServer]]:
    """Return the server of a kind, started at its first use: one per worker."""
    started: dict[str, ManifestServer] = {}
    with ExitStack() as running:

        def server(kind: str) -> ManifestServer:
            if kind not in started:
                started[kind] = running.enter_context(SERVERS[kind](tmp_path_factory.mktemp(kind)))
            return started[kind]

        yield server


@pytest.fixture(params=MANIFEST_STORES)
def manifest_server(request: pytest.FixtureRequest, tmp_path: Path) -> ManifestServer:
    """A manifest store of each kind; it may have rows of other datasets."""
    if request.param == "sqlite":
        return ManifestServer(f"sqlite:///{tmp_path}/rows.sqlite")
    if request.param == "dynamodb":
        s3_server: S3Server = request.getfixturevalue("s3_server")
        return dynamodb_table(s3_server)
    if request.param == "dynalite":
        new_table: Callable[[], ManifestServer] = request.getfixturevalue("dynalite")
        return new_table()
    servers: Callable[[str], ManifestServer] = request.getfixturevalue("manifest_servers")
    return servers(request.param)
