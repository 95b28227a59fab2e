"""Decide which names of raw files are read, and show any name on one line.

A name is only ever read literally: nothing in it is a URL, a query, an escape or an option. A file whose
name logs, events or stores cannot hold unchanged is not read.
"""

from __future__ import annotations

import unicodedata

from lance_ops.core.redaction import public_uri

__all__ = ["printable", "shown_uri", "why_not_literal"]

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


def _shown(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if "\udc80" <= character <= "\udcff":  # how Python holds a byte that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character if character.isprintable() else f"\\u{{{ord(character):x}}}"
