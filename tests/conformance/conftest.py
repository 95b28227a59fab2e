"""Every store and every committer there is, empty."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lance_ops.committers import Committer, PutIfAbsentCommitter
from lance_ops.store import FaultyStore, LocalStore, MemoryStore, Store

STORES = [
    pytest.param("local"),
    pytest.param("memory"),
    pytest.param("faulty"),
    pytest.param("s3", marks=pytest.mark.server),
]

COMMITTERS: dict[type[Committer], Callable[[Store], Committer]] = {PutIfAbsentCommitter: PutIfAbsentCommitter}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    make: dict[str, Callable[[], Store]] = {
        "local": lambda: LocalStore(str(tmp_path / "root")),
        "memory": MemoryStore,
        "faulty": lambda: FaultyStore(LocalStore(str(tmp_path / "root"))),
        "s3": lambda: request.getfixturevalue("s3_server").new_store(),
    }
    return make[request.param]()


@pytest.fixture(params=COMMITTERS.values(), ids=[kind.__name__ for kind in COMMITTERS])
def make_committer(request: pytest.FixtureRequest) -> Callable[[Store], Committer]:
    """Return how to make one kind of committer; it pickles."""
    make: Callable[[Store], Committer] = request.param
    return make


@pytest.fixture
def new_committer(make_committer: Callable[[Store], Committer], store: Store) -> Callable[[], Committer]:
    """Return handles on one dataset that does not exist yet, every handle a fresh one."""
    return lambda: make_committer(store)
