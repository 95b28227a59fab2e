"""Redact what a text itself reveals as a secret, and secrets that the caller knows.

Nothing here parses strictly, so nothing here raises: a malformed URL is redacted like a well-formed one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["REDACTED", "public_uri", "redact", "secrets_revealed"]

REDACTED = "***"

# A greedy match ends at the last `@`, because a password may hold one.
_AUTHORITY = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+:/{1,3})(?P<user>[^\s'\"<>]*)@")
_NO_PASSWORD = re.compile(r"[^:/]*(?::\d+)?/.*|[^:/]*", re.DOTALL)  # `hdfs://host:8020/a@b` has no user at all
_WEB = re.compile(r"https?:/+", re.IGNORECASE)
_SECRET_PARAMETER = r"[\w.%-]*(?:sig|signature|token|passw(?:or)?d|passphrase|pwd|secret|credentials?|api_?key)"
_VALUE = r"(?P<value>[^&;#\s'\"<>]+)"
_QUERY = re.compile(rf"(?P<name>(?:[?&;]|%3F|%26){_SECRET_PARAMETER}(?:=|%3D)){_VALUE}", re.IGNORECASE)
_SIGNATURE = re.compile(rf"(?P<name>\bsig(?:=|%3D)){_VALUE}", re.IGNORECASE)
_WEB_QUERY = re.compile(r"(?P<name>https?://[^\s'\"<>?#]*\?)(?P<value>[^\s'\"<>]+)", re.IGNORECASE)
_CONNECTION_PART = re.compile(
    r"(?P<name>\b(?:(?:ssl|db)?password|passwd|passphrase|pwd|account_?key|shared_?access_?(?:key|signature)"
    r"|(?:[a-z]+_)?secret(?:_?access)?(?:_?key)?)=)"
    r"(?P<value>'(?:\\.|[^'\\])*'|\"[^\"]*\"|\{[^}]*\}|[^\s;,&'\"]+)",
    re.IGNORECASE,
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` without these secrets, and without those that it reveals itself."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    text = public_uri(text)
    if "=" in text or "%3" in text:
        for pattern in (_CONNECTION_PART, _SIGNATURE):
            text = pattern.sub(rf"\g<name>{REDACTED}", text)
    return text


def public_uri(uri: str) -> str:
    """Return a URI, or a text with URIs in it, without their users, passwords, signatures and tokens.

    A web address loses its whole query, because servers name their tokens as they like, and its user, which may be a
    token. Elsewhere a user without a password stays: Azure's `abfss://container@account` has that form.
    """
    if ":/" not in uri and "=" not in uri and "%3" not in uri:
        return uri
    text = _AUTHORITY.sub(_without_user, uri)
    for pattern in (_WEB_QUERY, _QUERY):
        text = pattern.sub(rf"\g<name>{REDACTED}", text)
    return text


def secrets_revealed(text: str) -> Iterator[str]:
    """Yield what `redact` would remove from a text, whole and in the parts that a parser may quote."""
    for match in _AUTHORITY.finditer(text):
        if _without_user(match) != match[0]:
            yield match["user"]
            name, colon, password = match["user"].partition(":")
            if not colon or _WEB.fullmatch(match["scheme"]):
                yield name
            yield from (password, *re.split(r"[:@/]", password))
    for match in _WEB_QUERY.finditer(text):
        yield match["value"]
        yield from (part.partition("=")[2] for part in match["value"].split("&"))
    for pattern in (_QUERY, _SIGNATURE, _CONNECTION_PART):
        for match in pattern.finditer(text):
            yield match["value"]
            yield match["value"].strip("'\"{}")


def _without_user(match: re.Match[str]) -> str:
    user = match["user"]
    is_token = "/" not in user and _WEB.fullmatch(match["scheme"])
    if _NO_PASSWORD.fullmatch(user) and not is_token:
        return match[0]
    return f"{match['scheme']}{REDACTED}@"
