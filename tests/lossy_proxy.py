"""An HTTP proxy that drops requests or responses, as networks do, or conditions, as servers without them do."""

from __future__ import annotations

import http.client
import threading
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
    """A running proxy. `lose(method, path)` returns what to drop of a request, None for nothing."""

    endpoint: str = ""
    loses_conditions: bool = False
    lose: Callable[[str, str], Loss | None] = lambda method, path: None
    seen: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def lossy_proxy(endpoint: str, *, loses_conditions: bool = False) -> Iterator[LossyProxy]:
    """Run a proxy in front of the server at `endpoint`."""
    proxy = LossyProxy(loses_conditions=loses_conditions)
    address, base = urlsplit(endpoint).netloc, urlsplit(endpoint).path

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            proxy.seen.append((self.command, self.path))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            loss = proxy.lose(self.command, self.path)
            if loss == "request":
                self.close_connection = True
                return
            server = http.client.HTTPConnection(address, timeout=30)
            dropped = _HOP_BY_HOP | (_CONDITIONS if proxy.loses_conditions else set())
            headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
            path = _without_conditions(self.path) if proxy.loses_conditions else self.path
            server.request(self.command, path, body=body, headers=headers)
            answer = server.getresponse()
            content = answer.read()
            server.close()
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

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
