"""Read `storage_options` strictly, by the keys that each service declares.

No error shows a value: a secret may stand under a wrong key. An unknown key is shown if it looks like a name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from lance_ops.core.errors import InvalidInput
from lance_ops.core.redaction import shown_key

__all__ = [
    "Aliases",
    "read_bool",
    "read_count",
    "read_options",
    "read_seconds",
]

Aliases = Mapping[str, tuple[str, ...]]
"""For each of our option names, the keys that set it, the strongest first."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_options(
    given: Mapping[str, object], aliases: Aliases, environment_prefixes: tuple[str, ...]
) -> dict[str, str]:
    """Return the options by our names; options that are not given come from the environment, as in the reference.

    Keys are not case-sensitive. Raises `InvalidInput` for an unknown key, without showing its value.
    """
    ours = {key: name for name, keys in aliases.items() for key in keys}
    lowered = {key.lower(): str(value) for key, value in given.items()}
    unknown = sorted(shown_key(key) for key in given if key.lower() not in ours)
    if unknown:
        raise InvalidInput(f"storage_options: unknown keys {', '.join(unknown)}; known are {sorted(ours)}")
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
    raise InvalidInput(f"storage_options: {name} is true or false")


def read_seconds(options: Mapping[str, str], name: str) -> float | None:
    """Return a duration such as `30s`, `500ms` or `5m`; a bare number is seconds."""
    if name not in options:
        return None
    match = _DURATION.fullmatch(options[name].strip())
    if match is None:
        raise InvalidInput(f"storage_options: {name} is a duration such as '30s'")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def read_count(options: Mapping[str, str], name: str) -> int | None:
    """Return a number of times."""
    if name not in options:
        return None
    if not options[name].isdecimal():
        raise InvalidInput(f"storage_options: {name} is a number of times")
    return int(options[name])
