"""A server that answers each request as the test says, on 127.0.0.1."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, str]
"""The status and the body."""


@dataclass
class AnsweringServer:
    """`answer` is called with the number of requests before, and with the headers; `seen` holds methods and headers.

    `more_headers` are sent with each answer.
    """

    answer: Callable[[int, Message], Answer]
    endpoint: str = ""
    seen: list[tuple[str, Message]] = field(default_factory=list)
    more_headers: dict[str, str] = field(default_factory=dict)


@contextmanager
def answering_server(answer: Callable[[int, Message], Answer]) -> Iterator[AnsweringServer]:
    """Run the server for the block."""
    server = AnsweringServer(answer)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            with lock:
                before = len(server.seen)
                server.seen.append((self.command, self.headers))
            status, body = server.answer(before, self.headers)
            data = body.encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.send_header("etag", '"e"')
            for name, value in server.more_headers.items():
                self.send_header(name, value)
            with suppress(ConnectionError):  # the client may have given up
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_any  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        server.endpoint = f"http://127.0.0.1:{listening.server_port}"
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
