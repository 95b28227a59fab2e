"""Replace `${NAME}` and `${NAME:-default}` in a configured text when the text is used.

Secrets stay in the environment of the process that needs them. They appear in no file, definition or event.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from lance_ops.core.errors import ConfigError

__all__ = ["expand", "expand_all", "expand_location"]

_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")


def expand(text: str, where: str, environment: Mapping[str, str] | None = None) -> str:
    """Replace every variable in `text`; `where` names the key in the error for one that is not set.

    The error quotes the variable's name but not the text, which may already contain values of other variables.
    """
    values = os.environ if environment is None else environment

    def value(match: re.Match[str]) -> str:
        found = values.get(match["name"], match["default"])
        if found is None:
            raise ConfigError(
                f"{where}: environment variable {match['name']} is not set; set it, or give a default as "
                f"${{{match['name']}:-...}}"
            )
        return found

    return _VARIABLE.sub(value, text)


def expand_all(options: Mapping[str, str], where: str, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Replace the variables in every value of `options`."""
    return {key: expand(value, f"{where}.{key}", environment) for key, value in options.items()}


def expand_location(text: str, where: str, environment: Mapping[str, str] | None = None) -> str:
    """Replace the variables in a URI or path, and drop the slashes at its end.

    Raises `ConfigError` if the result is empty or holds a NUL, if a `${` begins no variable, and if the text begins
    with a variable that is empty, unless its default is empty, too. `${LAKE}/orders` would be a folder of the root
    directory, and tables would be written there.
    """
    first = _VARIABLE.match(text)
    if first is not None and first["default"] != "" and not expand(first[0], where, environment):
        raise ConfigError(
            f"{where}: environment variable {first['name']} is empty; give it a folder or a URL, or write "
            f"${{{first['name']}:-}} if it may be empty"
        )
    if "${" in _VARIABLE.sub("", text):
        raise ConfigError(f"{where}: ${{ must be followed by a name of letters, digits and _, and by }}")
    place = expand(text, where, environment)
    if not place or "\0" in place:
        raise ConfigError(f"{where}: {'has a NUL' if place else 'is empty'}: give a folder or a URL")
    return place.rstrip("/") or "/"
