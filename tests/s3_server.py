"""An S3 server for tests, on 127.0.0.1: moto."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lance_ops.store import FsspecStore
from tests.processes import free_port, running

ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"
# S3 may list fewer names at once than 1000, which take moto a quarter of a second; other requests wait meanwhile.
_PAGE_NAMES = 100


@dataclass(frozen=True)
class S3Server:
    """A running server that speaks S3."""

    endpoint: str
    client: str | None = None
    """The client that stores use; None for the default one."""

    @property
    def storage_options(self) -> dict[str, str]:
        """Storage options that this library accepts, and without `client` the reference too."""
        return {
            "aws_access_key_id": ACCESS_KEY,
            "aws_secret_access_key": SECRET_KEY,
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
            **({"store_client": self.client} if self.client else {}),
        }

    def new_bucket(self) -> str:
        """Create a new bucket and return its name."""
        import boto3  # the oracle's client, of the tests only

        name = f"bucket-{uuid.uuid4().hex}"
        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
        )
        client.create_bucket(Bucket=name)
        client.close()
        return name

    def new_uri(self, path: str = "data") -> str:
        """Return a URI in a new bucket."""
        return f"s3://{self.new_bucket()}/{path}"

    def new_store(self, path: str = "data") -> FsspecStore:
        """Return a store in a new bucket."""
        return FsspecStore(self.new_uri(path), self.storage_options)


@contextmanager
def moto_server(page_names: int = _PAGE_NAMES) -> Iterator[S3Server]:
    """Run moto in a process of its own, as a real server would be."""
    port = free_port()
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.servers.moto_one_put_at_a_time",
        "-H",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    path = os.pathsep.join([str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    with running(command, port, {"MOTO_S3_DEFAULT_MAX_KEYS": str(page_names), "PYTHONPATH": path}):
        yield S3Server(f"http://127.0.0.1:{port}")
