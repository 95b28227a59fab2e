"""Put tables into any kind of store, with secrets around them, and trace what is asked of every place around."""

from __future__ import annotations

import posixpath
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from lance_ops.store import MemoryStore, open_store
from tests.lossy_proxy import lossy_proxy
from tests.s3_server import S3Server
from tests.security.watched_folder import watching
from tests.servers.azure import ACCOUNT, AzureServer
from tests.servers.gcs import GcsServer

__all__ = ["OUTSIDE", "SECRET", "Surroundings", "on_disk_or_in_memory", "on_server"]

OUTSIDE = "outside"
"""The folder or prefix beside the tables, and in every other place, that nothing may touch."""

SECRET = b"kept safe: " + b"hunter2-hunter2" * 3
_GOOGLE = re.compile(r"/(?:upload/|download/)?storage/v1/b/([^/]*)(?:/o/?)?(.*)")

Trace = Callable[[], list[str]]


@dataclass(frozen=True)
class Surroundings:
    """A place for tables, and places that no table may reach: another bucket or name, and a folder on the disk.

    `options` lead through the recorder, `direct` around it.
    """

    tables: str
    elsewhere: str
    disk: Path
    options: dict[str, str]
    direct: dict[str, str]
    requests: Callable[[], list[str]]

    def plant(self) -> None:
        """Write the secrets."""
        for uri in (self.tables, self.elsewhere):
            open_store(uri, self.direct).put(f"{OUTSIDE}/secret.lance", SECRET)
        self.disk.mkdir(parents=True, exist_ok=True)
        (self.disk / "secret.lance").write_bytes(SECRET)

    def secrets(self) -> dict[str, bytes]:
        """Return everything that is stored in the places that no table may reach."""
        stores = [open_store(uri, self.direct) for uri in (f"{self.tables}/{OUTSIDE}", self.elsewhere)]
        found = {store.uri_of(each.path): bytes(store.get(each.path)) for store in stores for each in store.list()}
        return found | {f"{path}": path.read_bytes() for path in self.disk.rglob("*") if path.is_file()}

    @contextmanager
    def traced(self) -> Iterator[Trace]:
        """Record the places that are asked for, as `bucket/key` or as a path of the disk, each after a verb."""
        seen: list[str] = []
        key, walk = MemoryStore._key, MemoryStore._walk

        def recorded_key(store: MemoryStore, path: str) -> str:
            seen.append(f"memory {store.uri.removeprefix('memory://')}/{path}")
            return key(store, path)

        def recorded_walk(store: MemoryStore, prefix: str) -> object:
            seen.append(f"memory {store.uri.removeprefix('memory://')}/{prefix}")
            return walk(store, prefix)

        before = len(self.requests())
        with pytest.MonkeyPatch.context() as patch, watching(self.disk) as opened:
            patch.setattr(MemoryStore, "_key", recorded_key)
            patch.setattr(MemoryStore, "_walk", recorded_walk)
            yield lambda: [*seen, *opened, *self.requests()[before:]]


def on_disk_or_in_memory(kind: str, folder: Path) -> Surroundings:
    """Return surroundings without a server. On the disk, the secret folder is beside the tables."""
    if kind == "local":
        return Surroundings(str(folder), str(folder / "elsewhere"), folder / OUTSIDE, {}, {}, list)
    names = [f"memory://{uuid.uuid4().hex}" for _ in range(2)]
    return Surroundings(names[0], names[1], folder / OUTSIDE, {}, {}, list)


@contextmanager
def on_server(server: S3Server | AzureServer | GcsServer, folder: Path) -> Iterator[Surroundings]:
    """Yield surroundings in two buckets of a server, which a recording proxy stands before."""
    tables, elsewhere = (server.new_uri("x").removesuffix("/x") for _ in range(2))
    with lossy_proxy(server.endpoint) as proxy:
        yield Surroundings(
            tables,
            elsewhere,
            folder / OUTSIDE,
            replace(server, endpoint=proxy.endpoint).storage_options,
            server.storage_options,
            lambda: [f"{method} {_place(path)}" for method, path in proxy.seen],
        )


def _place(request: str) -> str:
    """Return the bucket, and the key or the listed prefix, that a request of any of the protocols names.

    A listing of a whole bucket is of the key `*`. A bucket alone is a question for its properties.
    """
    split = urlsplit(request)
    query = parse_qs(split.query)
    path = unquote(split.path)
    google = _GOOGLE.fullmatch(path)
    lists = (
        "list-type" in query
        or query.get("comp") == ["list"]
        or (google is not None and path.endswith("/o") and not path.startswith("/upload/"))
    )
    if google is not None:
        path = f"/{google[1]}/{google[2]}"
    named = [*query.get("prefix", []), *query.get("name", [])] or (["*"] if lists else [])
    parts = [path.removeprefix(f"/{ACCOUNT}"), *named]
    return posixpath.normpath("/".join(parts)).lstrip("/")
