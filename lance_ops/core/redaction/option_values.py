"""Find the secrets among the values of options, in every form in which a text may show them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from lance_ops.core.redaction.texts import secrets_revealed

__all__ = ["environment_secrets", "is_secret_key", "secret_values", "secrets_in", "shown_key"]

_SHORTEST_SECRET = 4  # redacting a shorter one would make messages unreadable

_SECRET_KEY = re.compile(
    r"secret|token(?!_file)|passw|passphrase|credential(?!s)|(account|access|master|private|shared|api|sas)_key"
    r"|sas|signature|proxy_url|connection_string|manifest_store|pwd|auth(?!ority)|cookie|^key$|pkey"
)
_PUBLIC_KEY = re.compile(
    r"region|endpoint|_url$|timeout|retr|(^|_)(allow|skip|use|disable|virtual)_|s3_express|certificate|account_name"
    r"|client_id|tenant_id|authority_id|object_id|resource_id|kms_key_id|bucket_key|encryption$|_(file|path)$"
    r"|service_account$|application_credentials$|user_agent|allowed_bases|^user(name)?$|^host$|^port$|replication"
    r"|project|excludes$|protocol|^anon$"
)
_SWITCH = re.compile(r"true|false|yes|no|on|off|none", re.IGNORECASE)
_QUANTITY = re.compile(r"[\d.]+\s*(ms|s|m|h)?", re.IGNORECASE)

_NAME = re.compile(r"[a-z]+([_.-][a-z0-9]{1,16})*|[A-Z]+(_[A-Z0-9]{1,16})*")
_LONGEST_NAME = 50


def is_secret_key(key: str) -> bool:
    """Return whether the name of an option says that its value is a secret."""
    return bool(_SECRET_KEY.search(key.lower()))


def secret_values(options: Mapping[str, object]) -> frozenset[str]:
    """Return the secrets among the values of options, each as it is, URL-encoded, and escaped.

    The values of options whose names say nothing count as secrets. A switch is no secret under any name. A number
    counts only under the name of a secret, because a password may consist of digits. A value that is public as a whole
    may contain a secret: the URL of an endpoint may have a password.
    """
    found: set[str] = set()
    for key, value in options.items():
        if isinstance(value, Mapping):
            found |= secret_values({str(name): each for name, each in value.items()})
            continue
        text = str(value)
        if _is_secret(key, text.strip()):
            found |= _forms(text)
        found |= secrets_in(text)
    return frozenset(found)


def environment_secrets(prefixes: Iterable[str]) -> frozenset[str]:
    """Return the secrets in environment variables whose lower-case names begin with one of the prefixes.

    Only variables whose names say that their value is a secret count.
    """
    named = tuple(prefixes)
    found = {key: value for key, value in os.environ.items() if key.lower().startswith(named) and is_secret_key(key)}
    return secret_values(found)


def secrets_in(text: str) -> frozenset[str]:
    """Return the secrets inside a URL, a connection string, or the JSON of a key, in each form."""
    return frozenset(form for secret in _secrets_within(text) for form in _forms(secret))


def shown_key(key: str) -> str:
    """Return a key for an error; if it does not look like the name of an option, return a text with only its length.

    Such a key may be a secret that the caller gave in the wrong place.
    """
    if len(key) <= _LONGEST_NAME and _NAME.fullmatch(key):
        return repr(key)
    return f"(a text of {len(key)} characters that is no name)"


def _is_secret(key: str, text: str) -> bool:
    if _SWITCH.fullmatch(text):
        return False
    return is_secret_key(key) or not (_PUBLIC_KEY.search(key.lower()) or _QUANTITY.fullmatch(text))


def _secrets_within(text: str) -> Iterator[str]:
    for plain in {text, unquote_plus(text)}:  # ODBC's connection strings are encoded inside a URL
        yield from secrets_revealed(plain)
    with suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict):
            yield from (str(part) for key, part in found.items() if is_secret_key(str(key)))


def _forms(secret: str) -> set[str]:
    """Return a secret as it is, decoded, encoded for a URL, and as `repr` and JSON write it."""
    forms: set[str] = set()
    for text in {secret, unquote(secret), unquote_plus(secret)}:
        forms |= {text, quote(text), quote(text, safe=""), quote_plus(text), repr(text)[1:-1], json.dumps(text)[1:-1]}
    return {form for form in forms if len(form) >= _SHORTEST_SECRET}
