"""Replace `${NAME}` and `${NAME:-default}` in a configured text when the text is used.

Secrets stay in the environment of the process that needs them. They appear in no file, definition or event.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from lance_ops.core.errors import ConfigError

__all__ = ["expand", "expand_all"]

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
