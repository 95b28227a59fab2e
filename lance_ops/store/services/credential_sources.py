"""Digest the environment variables and files that credentials come from, for the keys of shared clients.

A client is shared by all stores of a process that would get the same credentials. Its key therefore needs the sources
that the service's package reads: a digest of them changes when a variable or a file changes, and the next request then
uses a new client. A client itself renews credentials that it has obtained itself (roles, instance metadata, tokens of
an identity).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from hashlib import blake2b

__all__ = ["digest_of_sources", "environment_path"]

_MAX_BYTES = 1 << 20  # no file of credentials is that large


def digest_of_sources(prefixes: Iterable[str], files: Iterable[str]) -> bytes:
    """Return a digest of the content of files, and of environment variables whose lower-case names begin with a prefix.

    Only regular files are read, because a pipe would then be empty for the package that needs it.
    """
    named = tuple(prefixes)
    digest = blake2b(digest_size=16)
    for name in sorted(os.environ):
        if name.lower().startswith(named):
            digest.update(f"{name}={os.environ[name]}\0".encode("utf-8", "surrogateescape"))
    for path in files:
        digest.update(os.fsencode(path) + b"\0" + _content(path) + b"\0")
    return digest.digest()


def environment_path(variable: str, default: str | None = None) -> tuple[str, ...]:
    """Return one path or none: the one that a variable names, else the default. `~` is expanded in both."""
    path = os.environ.get(variable) or default
    return (os.path.expanduser(path),) if path else ()


def _content(path: str) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            return b"+" + blake2b(file.read(_MAX_BYTES), digest_size=16).digest()
    except (OSError, ValueError):  # missing, unreadable, or a token where a path may stand
        return b"-"
