"""Read the defaults of compaction from a table's configuration, under the reference's keys `lance.compaction.*`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lance_ops.core.errors import InvalidInput
from lance_ops.core.versions import FileVersion

__all__ = ["CONFIG_PREFIX", "configured_options"]

CONFIG_PREFIX = "lance.compaction."


def configured_options(config: Mapping[str, str]) -> dict[str, int | float | bool | str]:
    """Return the configured options by name; raise `InvalidInput` naming a key whose value cannot be used.

    Keys that this library does not know are ignored, as in the reference.
    """
    found: dict[str, int | float | bool | str] = {}
    for name, parse in _PARSERS.items():
        text = config.get(CONFIG_PREFIX + name)
        if text is None:
            continue
        try:
            found[name] = parse(text)
        except ValueError as error:
            raise InvalidInput(f"table configuration {CONFIG_PREFIX}{name}={text!r}: {error}") from error
    return found


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError("it must be a non-negative integer")
    return int(text)


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"


def _file_version(text: str) -> str:
    FileVersion.parse(text)
    return text


_PARSERS: dict[str, Callable[[str], int | float | bool | str]] = {
    "target_rows_per_fragment": _count,
    "max_bytes_per_file": _count,
    "materialize_deletions": _flag,
    "materialize_deletions_threshold": float,
    "max_source_fragments": _count,
    "max_source_rows": _count,
    "max_source_bytes": _count,
    "data_storage_version": _file_version,
}
