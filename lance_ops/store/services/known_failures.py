"""Tell the failures that a user can mend by a store's answer, whichever client asked: one sentence with the remedy.

Clients differ in their errors. All of them quote the code of S3's and Azure's answers, botocore in a field and obstore
in the text; of a store that does not answer, they have classes of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = ["gives_no_answer", "is_missing_bucket", "known_failure"]

_WHERE = "in storage_options, or where the environment or a file has them"
_KEYS = f"the store does not accept the access key and its secret: set the right ones {_WHERE}"
_TOKEN = f"the session token is no longer valid: set new credentials {_WHERE}"
_RIGHTS = "the credentials may not do this: allow it to them, or use others"
_BUCKET = "there is no such bucket: create it, or mend its name in the URI"
_CLOCK = "this machine's clock differs from the store's: synchronise it (NTP)"
_BUSY = (
    "the store takes no more requests for now: send fewer at once, try again later, or let the client repeat them for "
    "longer by client_retry_timeout in storage_options"
)
_NO_KEYS = f"no credentials are found: set them {_WHERE}"
_NO_ANSWER = "the store does not answer: see whether its endpoint is right, runs, and is reached from this machine"

_TOLD_BY_CODE: Mapping[str, str] = {
    **dict.fromkeys(("InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthenticationFailed"), _KEYS),
    **dict.fromkeys(("ExpiredToken", "InvalidToken", "TokenRefreshRequired"), _TOKEN),
    **dict.fromkeys(("AccessDenied", "AuthorizationFailure", "AuthorizationPermissionMismatch"), _RIGHTS),
    **dict.fromkeys(("NoSuchBucket", "ContainerNotFound"), _BUCKET),
    "403": _RIGHTS,  # botocore's code if a refusal has no body; "503" below is its code if a busy store's has none
    "RequestTimeTooSkewed": _CLOCK,
    **dict.fromkeys(("SlowDown", "ServiceUnavailable", "ServerBusy", "503"), _BUSY),
}
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_UNSENT = "HTTP error: "
"""How obstore begins the reason for which a request got no answer, behind the times that it tried."""

_NO_ANSWER_CLASSES = frozenset(
    {
        "ClientConnectorError",
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "EndpointConnectionError",
        "ReadTimeoutError",
        "ServerDisconnectedError",
    }
)
_NO_CREDENTIALS_CLASSES = frozenset({"NoCredentialsError", "PartialCredentialsError"})


def known_failure(error: BaseException) -> str | None:
    """Return what a failure means and what to do; None for a failure of another kind."""
    code = _code_of(error)
    if code in _TOLD_BY_CODE:
        what, _, remedy = _TOLD_BY_CODE[code].partition(": ")
        return f"{what} ({code}): {remedy}"
    if any(type(each).__name__ in _NO_CREDENTIALS_CLASSES for each in _causes(error)):
        return _NO_KEYS
    return _NO_ANSWER if gives_no_answer(error) else None


def gives_no_answer(error: BaseException) -> bool:
    """Return whether a request failed because the store could not be reached, or did not answer it."""
    return any(
        type(each).__name__ in _NO_ANSWER_CLASSES or (getattr(each, "status", 0) is None and _UNSENT in str(each))
        for each in _causes(error)
    )


def is_missing_bucket(error: BaseException) -> bool:
    """Return whether the store answered that there is no such bucket, which is another answer than no such object."""
    return _TOLD_BY_CODE.get(_code_of(error)) == _BUCKET


def _code_of(error: BaseException) -> str:
    for each in _causes(error):
        response = getattr(each, "response", None)
        if isinstance(response, Mapping) and isinstance(stated := response.get("Error"), Mapping):
            return str(stated.get("Code", ""))
        if found := _CODE.search(str(each)):
            return found[1]
    return ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that caused it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__
