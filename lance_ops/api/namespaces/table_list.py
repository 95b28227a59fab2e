"""Read the YAML file that names tables.

    tables:
      flights: /data/flights.lance
      weather:
        uri: s3://lake/weather.lance
        storage_options:
          aws_secret_access_key: ${LAKE_SECRET}

A value that is `${NAME}` as a whole is taken from the environment, so that no secret need stand in the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lance_ops.core.errors import ConfigError
from lance_ops.core.optional_packages import import_optional
from lance_ops.core.redaction import public_uri, raise_alone

__all__ = ["read_table_list"]

_MOST_BYTES = 1024**2
_MOST_EVENTS = 100_000
_MOST_DEPTH = 5
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def read_table_list(path: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """Return URI and storage options by name; relative paths are relative to the file's folder.

    Raises `ConfigError` naming the file and the key that is wrong, and never shows a value.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{path}: a list of tables may have at most {_MOST_BYTES:,} bytes")
    document = _parse(data, path)
    if not isinstance(document, Mapping) or document.keys() != {"tables"}:
        raise ConfigError(f"{path}: one key 'tables' is needed, with a URI or a uri and storage_options by name")
    tables = document["tables"]
    if not isinstance(tables, Mapping):
        raise ConfigError(f"{path}: 'tables' holds names, each with its URI")
    return {_text(name, path, "a name"): _table(each, path, f"tables.{name}") for name, each in tables.items()}


def _table(given: Any, path: Path, key: str) -> tuple[str, dict[str, str]]:
    if isinstance(given, str):
        given = {"uri": given}
    if not isinstance(given, Mapping) or "uri" not in given or given.keys() - {"uri", "storage_options"}:
        raise ConfigError(f"{path}: {key} is a URI, or has a 'uri' and perhaps 'storage_options'")
    uri = _text(given["uri"], path, f"{key}.uri")
    if public_uri(uri) != uri:
        raise ConfigError(f"{path}: {key}.uri holds a secret: use storage_options and ${{NAME}}")
    options = given.get("storage_options", {})
    if not isinstance(options, Mapping):
        raise ConfigError(f"{path}: {key}.storage_options holds texts by name")
    inner = f"{key}.storage_options"
    values = {_text(name, path, inner): _text(value, path, f"{inner}.{name}") for name, value in options.items()}
    return (uri if "://" in uri else str(path.parent / uri)), values


def _text(value: Any, path: Path, key: str) -> str:
    if isinstance(value, bool | int):
        value = str(value).lower()
    if not isinstance(value, str):
        raise ConfigError(f"{path}: {key} must be a text")
    variable = _VARIABLE.fullmatch(value)
    if variable is None:
        return value
    found = os.environ.get(variable[1])
    if found is None:
        raise ConfigError(f"{path}: {key}: environment variable {variable[1]} is not set")
    return found


def _parse(data: bytes, path: Path) -> Any:
    """Parse YAML without aliases, which can stand for any number of values, and of bounded depth."""
    yaml = import_optional("yaml", "a namespace in a YAML file", "dagster")
    try:
        depth = 0
        for number, event in enumerate(yaml.parse(data, yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent):
                raise ConfigError(f"{path}: line {event.start_mark.line + 1}: aliases are not read here")
            if number > _MOST_EVENTS or depth > _MOST_DEPTH:
                raise ConfigError(f"{path}: line {event.start_mark.line + 1}: more values or levels than tables need")
        return yaml.safe_load(data)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise_alone(ConfigError(f"{path}: line {line}: {error.problem}"))  # the parser's error quotes the line
    except yaml.YAMLError:
        raise_alone(ConfigError(f"{path}: is no YAML"))
