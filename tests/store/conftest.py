"""A store on the disk, and every service there is a server of."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lance_ops.store import LocalStore
from lance_ops.store.local import syncing
from tests.s3_server import S3Server
from tests.servers.azure import AzureServer
from tests.servers.gcs import GcsServer

ObjectServer = S3Server | AzureServer | GcsServer


@pytest.fixture(params=[pytest.param(service, marks=pytest.mark.server) for service in ("s3", "azure", "gcs")])
def object_server(request: pytest.FixtureRequest) -> ObjectServer:
    """A server of each service."""
    server: ObjectServer = request.getfixturevalue(f"{request.param}_server")
    return server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where a store on the disk is."""
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> LocalStore:
    """A store on the disk, not yet there."""
    return LocalStore(str(root))


@pytest.fixture
def one_sync_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `os.fsync` see, and fail, each sync of several."""

    def begin(descriptors: Sequence[int]) -> Callable[[], None]:
        def finish() -> None:
            for descriptor in descriptors:
                os.fsync(descriptor)

        return finish

    monkeypatch.setattr(syncing, "begin_fsync", begin)
