"""Decide which names of raw files are read, and in which format, and show any name on one line.

A name is only ever read literally: nothing in it is a URL, a query, an escape or an option. A file whose
name logs, events or stores cannot hold unchanged is not read.
"""

from __future__ import annotations

import unicodedata

from lance_ops.core.errors import RawFileRefused
from lance_ops.core.redaction import public_uri

__all__ = ["RAW_ENDINGS", "TEXT_FORMATS", "is_text_file", "printable", "raw_format", "shown_uri", "why_not_literal"]

_FORMATS: dict[str, str] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".orc": "orc",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
TEXT_FORMATS = ("csv", "json")
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_NOT_READ = {".avro": "Arrow does not read Avro: write the file as Parquet or ORC"}

RAW_ENDINGS = (*_FORMATS, *_COMPRESSIONS, *_NOT_READ)
"""What the name of a raw file may end with: a format, and after that of a text a compression."""

_NOT_IN_NAMES = {"Cc": "a control character", "Zl": "a line separator", "Zp": "a paragraph separator"}


def why_not_literal(path: str) -> str | None:
    """Return why a listed path cannot be used as it stands, or None if it can. Its segments stand between slashes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8; rename it"
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            return f"a segment of its name is {segment!r}, which some stores read as another name; rename it"
    if path.isprintable():
        return None
    found = next((kind for kind in map(unicodedata.category, path) if kind in _NOT_IN_NAMES), None)
    return f"its name holds {_NOT_IN_NAMES[found]}; rename it" if found else None


def printable(name: str) -> str:
    r"""Return a name on one line, without control codes; different names give different texts.

    A byte that is not UTF-8 is shown as `\xNN`, and a backslash as two. Any other character that is not printable is
    shown as `\u{N}` with its code point.
    """
    return "".join(map(_shown, name))


def shown_uri(uri: str) -> str:
    """Return a raw file's URI as errors show it: without its secrets, on one line."""
    return printable(public_uri(uri))


def raw_format(uri: str) -> tuple[str, str | None]:
    """Return a raw file's format and compression, in Arrow's words, by its ending in any case.

    Raises `RawFileRefused` for an unknown ending, and for compressed files that are not text.
    """
    lowered = uri.lower()
    compression = next((name for ending, name in _COMPRESSIONS.items() if lowered.endswith(ending)), None)
    inner = lowered if compression is None else lowered.rpartition(".")[0]
    for ending, name in _FORMATS.items():
        if inner.endswith(ending) and (compression is None or name in TEXT_FORMATS):
            return name, compression
    for ending, reason in _NOT_READ.items():
        if inner.endswith(ending):
            raise RawFileRefused(shown_uri(uri), reason)
    text = ", ".join(ending for ending, name in _FORMATS.items() if name in TEXT_FORMATS)
    raise RawFileRefused(
        shown_uri(uri),
        f"its ending must be one of {', '.join(_FORMATS)}; {text} may be followed by {', '.join(_COMPRESSIONS)}",
    )


def is_text_file(uri: str) -> bool:
    """Return whether a file of this name is text, whose types follow from a lead or by inference."""
    return raw_format(uri)[0] in TEXT_FORMATS


def _shown(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if "\udc80" <= character <= "\udcff":  # how Python holds a byte that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character if character.isprintable() else f"\\u{{{ord(character):x}}}"
