"""Ask a server for the headers of its answer, which obstore does not show.

The request is a `HEAD` without a signature, so that no secret is sent. A server states its clock, and Amazon the region
of a bucket, also where it refuses the request.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

__all__ = ["region_of_bucket", "time_of_server"]

_SECONDS = 5.0
_SERVER_ERROR = 500


def time_of_server(url: str, proxies: Mapping[str, str], *, verifies: bool = True) -> datetime | None:
    """Return the time that the server at `url` states, None if it states none or gives no answer.

    No answer means: the server is silent for 5 s, the network or TLS fails, or the status is 500 or above. `proxies`
    are by scheme; without any, those of the environment are used. `verifies` says whether a certificate must be valid.
    """
    stated = _header("date", url, proxies, verifies)
    try:
        return parsedate_to_datetime(stated).astimezone(UTC) if stated else None
    except ValueError:
        return None


def region_of_bucket(url: str, proxies: Mapping[str, str], *, verifies: bool = True) -> str | None:
    """Return the region that Amazon states for the bucket at `url`, None if it states none or gives no answer.

    Every region answers for the buckets of all regions of its partition. `time_of_server` says what no answer means,
    and what `proxies` and `verifies` are.
    """
    return _header("x-amz-bucket-region", url, proxies, verifies)


def _header(name: str, url: str, proxies: Mapping[str, str], verifies: bool) -> str | None:
    """Return a header of an answer, None without an answer.

    An error of the server (500 and above) counts as no answer, because a gateway before the server may have made it.
    """
    try:
        handlers: list[Any] = [_NoRedirects(), HTTPSHandler(context=_context(verifies, _trusted_certificates()))]
        if proxies:
            handlers.append(ProxyHandler(dict(proxies)))
        with build_opener(*handlers).open(Request(url, method="HEAD"), timeout=_SECONDS) as answer:
            found: str | None = answer.headers.get(name)
            return found or None
    except HTTPError as error:
        with error:
            return error.headers.get(name) or None if error.code < _SERVER_ERROR else None
    except (OSError, ValueError, HTTPException):
        return None


def _trusted_certificates() -> tuple[tuple[str, int], ...]:
    """Return the file and the directory of trusted certificates, with their times of change in nanoseconds."""
    paths = ssl.get_default_verify_paths()
    return tuple((path, os.stat(path).st_mtime_ns) for path in (paths.cafile, paths.capath) if path)


@lru_cache(maxsize=8)
def _context(verifies: bool, trusted: tuple[tuple[str, int], ...]) -> ssl.SSLContext:
    """Return how certificates are checked. It is kept until other certificates are `trusted`, or their file changes.

    Parsing the trusted certificates takes about as long as the request.
    """
    return ssl.create_default_context() if verifies else ssl._create_unverified_context()


class _NoRedirects(HTTPRedirectHandler):
    """A redirect is an answer too, and its target is no server that the caller named."""

    def redirect_request(self, *_: Any) -> None:
        return None
