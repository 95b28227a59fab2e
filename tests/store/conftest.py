"""A store on the disk, and every service there is a server of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lance_ops.store import PROCESS_RESOURCES, FsspecStore, LocalStore
from lance_ops.store.local import syncing
from lance_ops.store.services.obstore import unsigned_head
from tests.s3_server import S3Server
from tests.servers.obstore import OBJECT_SERVERS, ObjectServer, object_server_of, through_obstore

__all__ = ["ObjectServer", "client_of", "open_files"]


def client_of(store: FsspecStore) -> Any:
    """Return the client that makes a store's requests."""
    return store._connected()[1]


def open_files(folder: Path) -> list[str]:
    """Return the files in a folder that this process has open; whatever else it has is the business of other tests."""
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # another thread has closed it, or it was the listing's own
            found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return [path for path in found if path.startswith(f"{folder}/")]


@pytest.fixture(autouse=True)
def _on_disk(on_disk: Path) -> None:
    """Let the files of these tests be on a disk: a file system in memory has nothing to sync."""


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.server) for name in OBJECT_SERVERS])
def object_server(request: pytest.FixtureRequest) -> ObjectServer:
    """A server of each service, used by each client."""
    return object_server_of(request, request.param)


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a server's time as long as a loaded machine takes: without an answer, other requests would follow."""
    monkeypatch.setattr(unsigned_head, "_SECONDS", 120.0)


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


@pytest.fixture
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment without Amazon's variables; returns the file of its profiles, which does not exist."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "BOTO_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (tmp_path / ".aws").mkdir()
    return tmp_path / ".aws" / "config"


@pytest.fixture
def no_old_clients() -> Iterator[None]:
    """Begin without clients: their credentials are those of another test's environment."""
    PROCESS_RESOURCES.reset()
    yield
    PROCESS_RESOURCES.reset()


@pytest.fixture
def s3(s3_server: S3Server) -> FsspecStore:
    """A store that obstore serves."""
    return through_obstore(s3_server).new_store()
