"""Every store there is, empty."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lance_ops.store import FaultyStore, LocalStore, MemoryStore, Store

STORES = [
    pytest.param("local"),
    pytest.param("memory"),
    pytest.param("faulty"),
    pytest.param("s3", marks=pytest.mark.server),
]


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
