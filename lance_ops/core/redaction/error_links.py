"""Raise errors whose links (cause, context, group) lead to no error that shows a secret."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from lance_ops.core.redaction.texts import redact

__all__ = ["raise_alone", "shows_secret"]


def raise_alone(error: BaseException, cause: BaseException | None = None, secrets: Iterable[str] = ()) -> NoReturn:
    """Raise an error without a link to the one being handled, and with `cause` only if that shows no secret.

    `raise … from None` hides the link from tracebacks, but `__context__` keeps it, and error trackers follow it.
    """
    try:
        raise error from (None if cause is None or shows_secret(cause, secrets) else cause)
    finally:
        error.__context__ = None


def shows_secret(error: BaseException, secrets: Iterable[str] = ()) -> bool:
    """Return whether an error, or one that it is linked to, shows a secret.

    Secrets are `secrets`, and what `redact` finds in the text itself.
    """
    known = tuple(secrets)
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        for text in (str(link), repr(link), *map(str, getattr(link, "__notes__", ()))):
            if redact(text, known) != text:
                return True
        waiting += (link.__cause__, link.__context__, *getattr(link, "exceptions", ()))
    return False
