"""Secrets that tests plant in options and URLs, and the search for them in texts, errors and files."""

from __future__ import annotations

import base64
import re
import traceback
from pathlib import Path

_MARK = "PLANTEDSECRET"
_ENCODED = [base64.b64encode(b"x" * shift + _MARK.encode())[4 if shift else 0 : -4] for shift in range(3)]
_ANY = re.compile(b"|".join([_MARK.encode(), *map(re.escape, _ENCODED)]) + rb"[A-Za-z0-9]*", re.IGNORECASE)


def planted(place: str) -> str:
    """Return a secret that says where it was planted, with characters that URLs, JSON and `repr` write differently."""
    return f"{_MARK}{re.sub('[^a-z0-9]', '', place.lower())}+/'\"\\="


def plain(place: str) -> str:
    """Return a secret of letters and digits alone, which keeps a URL well-formed."""
    return f"{_MARK}{re.sub('[^a-z0-9]', '', place.lower())}"


def found_in(data: str | bytes) -> list[str]:
    """Return the planted secrets in a text or in bytes, also in base64."""
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    return [match.group().decode() for match in _ANY.finditer(raw)]


def found_in_error(error: BaseException) -> list[str]:
    """Return the planted secrets in all that an error and the errors it is linked to say."""
    texts, waiting, seen = traceback.format_exception(error), [error], set()
    while waiting:
        link = waiting.pop()
        if id(link) in seen:
            continue
        seen.add(id(link))
        texts += [str(link), repr(link), str(link.args), str(getattr(link, "__notes__", "")), str(vars(link))]
        waiting += [each for each in (link.__cause__, link.__context__) if each is not None]
    return [secret for text in texts for secret in found_in(text)]


def found_in_files(*folders: Path) -> dict[str, list[str]]:
    """Return the planted secrets in the names and the bytes of all files, by path. There must be files."""
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    assert files
    found = {str(path): found_in(path.read_bytes()) + found_in(path.name) for path in files}
    return {path: secrets for path, secrets in found.items() if secrets}
