"""S3 servers for tests, on 127.0.0.1: moto's, which honours conditions, and a small one that ignores them."""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lance_ops.store import FsspecStore
from tests.processes import free_port, running

ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"


@dataclass(frozen=True)
class S3Server:
    """A running server that speaks S3."""

    endpoint: str

    @property
    def storage_options(self) -> dict[str, str]:
        """The reference implementation's keys, good for it and for us."""
        return {
            "aws_access_key_id": ACCESS_KEY,
            "aws_secret_access_key": SECRET_KEY,
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
        }

    def new_bucket(self) -> str:
        """Make a bucket nobody else uses and return its name."""
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

    def new_store(self, path: str = "data") -> FsspecStore:
        """Return a store in a bucket of its own."""
        return FsspecStore(f"s3://{self.new_bucket()}/{path}", self.storage_options)


@contextmanager
def moto_server() -> Iterator[S3Server]:
    """Run moto in a process of its own, as a real server would be."""
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, port):
        yield S3Server(f"http://127.0.0.1:{port}")


@contextmanager
def careless_server() -> Iterator[S3Server]:
    """Run a server that stores whatever it is sent, whatever the condition says."""
    objects: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # clients wait for a 100 before they send a body

        def do_PUT(self) -> None:
            objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(200)

        def do_GET(self) -> None:
            if self.path in objects:
                self._answer(200, objects[self.path])
            else:
                self._answer(404)

        def do_DELETE(self) -> None:
            objects.pop(self.path, None)
            self._answer(204)

        def _answer(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"0"')
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield S3Server(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
