"""A bucket that can only be listed: S3's listings of many objects that are not there, as fast as S3 answers.

`python -m tests.servers.listed_bucket PORT NUM_OBJECTS LATENCY_SECONDS`. moto copies and sorts the names of all objects
for each page, so a long listing takes it longer the longer it is, and hides what its client costs.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.processes import free_port, running

__all__ = ["listed_bucket", "object_name"]

_PAGE_NAMES = 1000
_HEAD = '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
_OBJECT = (
    "<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
    "<ETag>&quot;{tag:032x}&quot;</ETag><Size>1</Size><StorageClass>STANDARD</StorageClass></Contents>"
)


def object_name(number: int) -> str:
    """Return the name of an object: each folder has 1,000 of them."""
    return f"landing/day{number // 1000:04}/f{number:07}.parquet"


@contextmanager
def listed_bucket(num_objects: int, latency_seconds: float = 0.0) -> Iterator[str]:
    """Run the server in a process of its own, and return its endpoint; every bucket has the same objects."""
    port = free_port()
    command = [sys.executable, "-m", __name__, str(port), str(num_objects), str(latency_seconds)]
    with running(command, port):
        yield f"http://127.0.0.1:{port}"


def _page(names: list[str], query: dict[str, list[str]]) -> str:
    """Return one page of a listing."""

    def asked(name: str) -> str:
        return query.get(name, [""])[0]

    prefix, delimiter = asked("prefix"), asked("delimiter")
    position = bisect_left(names, prefix)
    if after := asked("continuation-token") or asked("start-after"):
        position = max(position, bisect_right(names, after))
    parts, last = [_HEAD], ""
    while position < len(names) and len(parts) <= _PAGE_NAMES and names[position].startswith(prefix):
        name = names[position]
        folder, slash, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
        if slash:
            parts.append(f"<CommonPrefixes><Prefix>{prefix}{folder}/</Prefix></CommonPrefixes>")
            position = bisect_left(names, f"{prefix}{folder}0")  # the character after the slash
            last = names[position - 1]
        else:
            parts.append(_OBJECT.format(name=name, tag=position))
            position, last = position + 1, name
    is_truncated = position < len(names) and names[position].startswith(prefix)
    parts.append(f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated><Prefix>{prefix}</Prefix>")
    parts.append(f"<NextContinuationToken>{last}</NextContinuationToken>" if is_truncated else "")
    return "".join([*parts, "</ListBucketResult>"])


def _serve(port: int, num_objects: int, latency_seconds: float) -> None:
    names = sorted(map(object_name, range(num_objects)))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = _page(names, parse_qs(urlsplit(self.path).query)).encode()
            time.sleep(latency_seconds)
            self.send_response(200)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    Server(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
