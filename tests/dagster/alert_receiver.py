"""A local HTTP server that takes alerts."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["SECRET", "Receiver", "receiving", "serving"]

SECRET = "s3cr3t-path"
"""The path of the server's URL, which no message may show."""


@dataclass
class Receiver:
    """What a server was sent. It answers with `status`, and with `answer` as its body.

    `next_answers` come before: a status, words that are not HTTP, or None for silence until the server ends.
    """

    url: str = ""
    status: int = 200
    answer: bytes = b'{"ok": true}'
    next_answers: list[int | bytes | None] = field(default_factory=list)
    num_requests: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def take(self) -> list[dict[str, Any]]:
        """Return the bodies that were taken since the last call."""
        taken, self.bodies = self.bodies, []
        return taken


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a server for the block."""
    received, is_over = Receiver(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.num_requests += 1
            status = received.next_answers.pop(0) if received.next_answers else received.status
            if not isinstance(status, int):
                is_over.wait(None if status is None else 0)
                self.wfile.write(status or b"")
                return
            if status == 200:
                received.bodies.append(json.loads(body))
                received.headers.append(dict(self.headers))
            self.send_response(status)
            self.send_header("Location", received.url)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(received.answer)

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        received.url = f"http://127.0.0.1:{port}/{SECRET}"
        try:
            yield received
        finally:
            is_over.set()


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    """Serve in a thread for the block; yield the port."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
