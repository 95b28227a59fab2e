"""Turn the errors of obstore into errors of Python with the answer's status.

obstore has no attribute for the status. Its text has the form `Generic S3 error: Error performing PUT URL in 3ms -
Server returned non-2xx status code: 503 Service Unavailable: body`, then a dump of Rust values. The URL is encoded, so
that the first match is the client's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["RequestFailed", "translating"]

_STATUS = re.compile(r"Server returned non-2xx status code: (\d{3})")
_DUMP = "\n\nDebug source:"
_STATUS_OF_KIND = {"PermissionDeniedError": 403, "UnauthenticatedError": 401}
_NOT_FOUND = 404


class RequestFailed(OSError):
    """A request failed; `status` is that of the answer, None if there was no answer."""

    def __init__(self, text: str, status: int | None) -> None:
        super().__init__(text)
        self.status = status


@contextmanager
def translating() -> Iterator[None]:
    """Raise `FileNotFoundError` for an answer of 404, and `RequestFailed` for every other error of obstore."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(_text(error)) from None
    except Exception as error:  # the package that declares the classes may not be installed
        if not type(error).__module__.startswith("obstore"):
            raise
        status = _status(error)
        if status == _NOT_FOUND:
            raise FileNotFoundError(_text(error)) from None
        raise RequestFailed(f"{type(error).__name__}: {_text(error)}", status) from None


def _status(error: Exception) -> int | None:
    known = _STATUS_OF_KIND.get(type(error).__name__)
    if known is not None:
        return known
    found = _STATUS.search(str(error))
    return None if found is None else int(found[1])


def _text(error: Exception) -> str:
    return str(error).partition(_DUMP)[0]
