"""Run moto with one PUT or POST at a time: `python -m tests.servers.moto_one_put_at_a_time -p PORT`.

moto looks whether an object exists and stores the new one in two steps, and serves requests in threads. So two
conditional creates at once may both succeed, which S3 promises not to do.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable
from typing import Any

from moto import server
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

__all__ = ["OnePutAtATime"]


class OnePutAtATime(DomainDispatcherApplication):
    """moto's application; it reads a body before it takes the turn, because a slow client must not hold up others."""

    _turn = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in ("PUT", "POST"):
            return self._answer(environ, start_response)
        if environ.get("CONTENT_LENGTH"):
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        with self._turn:
            return self._answer(environ, start_response)

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        answer: Iterable[bytes] = super().__call__(environ, start_response)
        return answer


if __name__ == "__main__":
    vars(server)["DomainDispatcherApplication"] = OnePutAtATime  # which `main` runs
    server.main()
