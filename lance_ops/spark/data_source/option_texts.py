"""Read the text of an option, and tell which option a name means: Spark's, Delta's, or one that is written wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias, get_args

from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema import SchemaMode
from lance_ops.core.versions import FileVersion

__all__ = [
    "BlobHandling",
    "ParseText",
    "check_blob_handling",
    "known_options_hint",
    "option_name_and_spelling",
    "parse_blob_handling",
    "parse_file_version",
    "parse_flag",
    "parse_moment",
    "parse_names",
    "parse_number",
    "parse_schema_mode",
    "plain_text",
    "similar_option",
]

BlobHandling = Literal["all_binary", "blobs_descriptions"]
"""What a read gives of blobs: their bytes, or descriptions of where these are."""

ParseText: TypeAlias = Callable[[str, str], Any]
"""Returns the value of an option from its name, as the user wrote it, and its text; raises `InvalidInput`."""

_SPARKS_NAMES = {
    "versionAsOf": "version",
    "timestampAsOf": "timestamp",
    "replaceWhere": "replace_where",
    "mergeSchema": "merge_schema",
    "overwriteSchema": "overwrite_schema",
    "startingVersion": "starting_version",
    "readChangeFeed": "read_change_feed",
}
_SPARKS_SPELLING = {name.lower(): name for name in _SPARKS_NAMES}
_NEAREST = {
    "maxfilespertrigger": "max_fragments_per_trigger",
    "maxbytespertrigger": "max_rows_per_trigger",
    "ignoredeletes": "skip_changes",
    "ignorechanges": "skip_changes",
    "skipchangecommits": "skip_changes",
    "txnappid": "batch",
    "txnversion": "batch",
}
"""Delta's options whose names are far from those of the options that do the same here."""
_RESEMBLES = 0.75
"""How alike a key must be to an option, as difflib measures it, to be taken for a misspelt one."""


def option_name_and_spelling(key: str) -> tuple[str, str]:
    """Return the name of an option by its key, and how the user may have spelled it.

    Spark converts keys to lower case, and has names of its own for some options.
    """
    shown = _SPARKS_SPELLING.get(key.lower(), key)
    return _SPARKS_NAMES.get(shown, key.lower()), shown


def known_options_hint(name: str, known: Collection[str]) -> str:
    """Return the options that there are, after the one that the user may have meant."""
    meant = _NEAREST.get(name) or _nearest(name, known)
    hint = f"did you mean {meant!r}? The" if meant else "the"
    return f"{hint} options are {', '.join(sorted(known))}"


def similar_option(name: str, known: Collection[str]) -> str | None:
    """Return the option that a name resembles so much that it may be a misspelt one, or None."""
    return _nearest(name, known, _RESEMBLES)


def plain_text(_: str, text: str) -> str:
    """Return the text itself."""
    return text


def parse_number(name: str, text: str) -> int:
    """Return a positive whole number."""
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise InvalidInput(f"option {name!r} must be a positive number, not {text!r}")
    return int(text)


def parse_moment(name: str, text: str) -> datetime:
    """Return a moment in ISO 8601; without a zone it is in UTC."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidInput(f"option {name!r} is a moment like '2026-01-31T12:00:00Z', not {text!r}") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def parse_flag(name: str, text: str) -> bool:
    """Return whether the text is `true`; raise for one that is neither this nor `false`."""
    if text.lower() not in ("true", "false"):
        raise InvalidInput(f"option {name!r} is 'true' or 'false', not {text!r}")
    return text.lower() == "true"


def parse_names(name: str, text: str) -> tuple[str, ...]:
    """Return names that are separated by commas or a JSON list."""
    if not text.lstrip().startswith("["):
        return tuple(part.strip() for part in text.split(","))
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"option {name!r} is not a JSON list of names: {error}") from error
    if not all(isinstance(part, str) for part in found):
        raise InvalidInput(f"option {name!r} is not a JSON list of names: {text}")
    return tuple(found)


def parse_blob_handling(name: str, text: str) -> str:
    """Return a `BlobHandling`."""
    check_blob_handling(name, text)
    return text


def parse_schema_mode(name: str, text: str) -> SchemaMode:
    """Return a mode by its name, in any case."""
    try:
        return SchemaMode(text.lower())
    except ValueError:
        raise InvalidInput(
            f"option {name!r} is one of {', '.join(mode.value for mode in SchemaMode)}, not {text!r}"
        ) from None


def parse_file_version(_: str, text: str) -> FileVersion:
    """Return a file version that can be written."""
    return FileVersion.parse(text)


def check_blob_handling(name: str, given: str | None) -> None:
    """Raise `InvalidInput` for a value of the option that is neither None nor a `BlobHandling`."""
    if given is not None and given not in get_args(BlobHandling):
        raise InvalidInput(f"option {name!r} is {' or '.join(map(repr, get_args(BlobHandling)))}, not {given!r}")


def _nearest(name: str, known: Collection[str], cutoff: float = 0.6) -> str | None:
    spelled = {each.replace("_", ""): each for each in known}
    near = get_close_matches(name.replace("_", ""), spelled, n=1, cutoff=cutoff)
    return spelled[near[0]] if near else None
