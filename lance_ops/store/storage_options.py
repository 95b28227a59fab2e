"""Read `storage_options` strictly, by the keys that each service declares, and redact secrets from texts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from urllib.parse import quote, unquote

from lance_ops.core.errors import InvalidInput

__all__ = ["Aliases", "read_bool", "read_count", "read_options", "read_seconds", "redact", "secret_values"]

Aliases = Mapping[str, tuple[str, ...]]
"""For each of our option names, the keys that set it, the strongest first."""

_SECRET = re.compile(r"secret|token|password|credential|(account|access|master|private)_key|sas|proxy_url")
_SIGNATURE = re.compile(r"(?:^|[?&])sig=([^&]+)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_REDACTED = "***"
_SHORTEST_SECRET = 4  # redacting a shorter one would make messages unreadable


def read_options(
    given: Mapping[str, object], aliases: Aliases, environment_prefixes: tuple[str, ...]
) -> dict[str, str]:
    """Return the options by our names; options that are not given come from the environment, as in the reference.

    Keys are not case-sensitive. Raises `InvalidInput` for an unknown key, without showing its value.
    """
    ours = {key: name for name, keys in aliases.items() for key in keys}
    lowered = {key.lower(): str(value) for key, value in given.items()}
    unknown = sorted(key for key in lowered if key not in ours)
    if unknown:
        raise InvalidInput(f"storage_options: unknown keys {unknown}; known are {sorted(ours)}")
    found: dict[str, str] = {}
    for name, keys in aliases.items():
        from_environment = (os.environ.get(key.upper()) for key in keys if key.startswith(environment_prefixes))
        values = (*(lowered.get(key) for key in keys), *from_environment)
        value = next((value for value in values if value), None)
        if value is not None:
            found[name] = value
    return found


def read_bool(options: Mapping[str, str], name: str) -> bool:
    """Return a switch, which is off unless given. Raises `InvalidInput` for a value that is no switch."""
    value = options.get(name, "false").lower()
    if value in ("true", "1", "yes", "on"):
        return True
    if value in ("false", "0", "no", "off"):
        return False
    raise InvalidInput(f"storage_options: {name} is true or false, not {value!r}")


def read_seconds(options: Mapping[str, str], name: str) -> float | None:
    """Return a duration such as `30s`, `500ms` or `5m`; a bare number is seconds."""
    if name not in options:
        return None
    match = _DURATION.fullmatch(options[name].strip())
    if match is None:
        raise InvalidInput(f"storage_options: {name} is a duration such as '30s', not {options[name]!r}")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def read_count(options: Mapping[str, str], name: str) -> int | None:
    """Return a number of times."""
    if name not in options:
        return None
    if not options[name].isdecimal():
        raise InvalidInput(f"storage_options: {name} is a number of times, not {options[name]!r}")
    return int(options[name])


def secret_values(options: Mapping[str, object]) -> tuple[str, ...]:
    """Return the secret values and the secrets inside them, each also in the form that a URL has."""
    values = (str(value) for key, value in options.items() if _SECRET.search(key.lower()))
    secrets = (secret for value in values for secret in (value, *_secrets_within(value)))
    return tuple(
        {form for secret in secrets if len(secret) >= _SHORTEST_SECRET for form in (secret, quote(secret, safe=""))}
    )


def _secrets_within(value: str) -> Iterator[str]:
    """Yield the signature of Azure's tokens, and the secrets in a JSON object, as in Google's keys."""
    signature = _SIGNATURE.search(value)
    if signature is not None:
        yield from {signature[1], unquote(signature[1])}
    with suppress(json.JSONDecodeError):
        found = json.loads(value)
        if isinstance(found, dict):
            yield from (str(part) for key, part in found.items() if _SECRET.search(key.lower()))


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return `text` without the secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _REDACTED)
    return text
