"""An HTTP proxy that drops, delays or refuses requests, as networks and servers do, or drops conditions.

Servers that do not know conditions ignore them.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

Loss = Literal["request", "answer"]
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}
_CONDITIONS = {"if-none-match", "ifgenerationmatch"}


@dataclass
class LossyProxy:
    """A running proxy. `lose(method, path)` returns what to drop of a request, None for nothing.

    Each request is answered with the status and the body of `refusal`, if there is one.
    `seen` holds the requests, and `sizes_bytes` how large the bodies of each request and its answer were together.
    """

    endpoint: str = ""
    loses_conditions: bool = False
    latency_seconds: float = 0.0
    lose: Callable[[str, str], Loss | None] = lambda method, path: None
    refusal: tuple[int, str] | None = None
    seen: list[tuple[str, str]] = field(default_factory=list)
    sizes_bytes: list[int] = field(default_factory=list)


def request_name(method: str, path: str) -> str:
    """Return S3's name of a request to any service: `HEAD` asks for an object's size, `PUT` sends a whole object."""
    if any(mark in path for mark in ("list-type=", "comp=list&", "/o?")) and method == "GET":  # the last is Google's
        return "LIST"
    if "/storage/v1/b/" not in path or method == "DELETE":
        return method
    if method == "POST":  # Google's
        return "PUT" if "uploadType=multipart" in path else "part of a PUT"
    return "GET" if "alt=media" in path or "/download/" in path else "HEAD"


@contextmanager
def lossy_proxy(endpoint: str, *, loses_conditions: bool = False, latency_seconds: float = 0.0) -> Iterator[LossyProxy]:
    """Run a proxy in front of the server at `endpoint`, which holds each request back for `latency_seconds`."""
    proxy = LossyProxy(loses_conditions=loses_conditions, latency_seconds=latency_seconds)
    address, base = urlsplit(endpoint).netloc, urlsplit(endpoint).path

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # an answer's head and body are sent one after the other

        def handle_any(self) -> None:
            proxy.seen.append((self.command, self.path))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            time.sleep(proxy.latency_seconds)
            loss = proxy.lose(self.command, self.path)
            if loss == "request":
                self.close_connection = True
                return
            if proxy.refusal is not None:
                status, text = proxy.refusal
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text.encode())
                return
            server = http.client.HTTPConnection(address, timeout=240)
            dropped = _HOP_BY_HOP | (_CONDITIONS if proxy.loses_conditions else set())
            headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
            path = _without_conditions(self.path) if proxy.loses_conditions else self.path
            server.request(self.command, path, body=body, headers=headers)
            answer = server.getresponse()
            content = answer.read()
            server.close()
            proxy.sizes_bytes.append(len(body) + len(content))
            if loss == "answer":
                self.close_connection = True
                return
            self.send_response_only(answer.status)  # the date is the server's own
            for name, value in answer.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = handle_any  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # a client opens many connections at once, and a refused one waits for a second

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        proxy.endpoint = f"http://127.0.0.1:{server.server_port}{base}"
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _without_conditions(path: str) -> str:
    place, mark, query = path.partition("?")
    return place + mark + urlencode([pair for pair in parse_qsl(query, True) if pair[0].lower() not in _CONDITIONS])
