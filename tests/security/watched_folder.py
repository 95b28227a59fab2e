"""See what this process opens or changes beneath a folder, by any of Python's functions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["watching"]

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class _Opened:
    """The files that this process opens or changes beneath a folder while it looks."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.paths: list[str] = []
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None or not (event == "open" or event.startswith(("os.", "shutil."))):
            return
        for argument in arguments:
            if isinstance(argument, str | bytes):
                path = os.path.realpath(os.fsdecode(argument).replace("\0", "")) if argument else ""
                if path == self.folder or path.startswith(f"{self.folder}/"):
                    writes = event == "open" and isinstance(arguments[-1], int) and arguments[-1] & _WRITING
                    self.paths.append(f"{'write' if writes else event} {path}")


_OPENED = _Opened()


@contextmanager
def watching(outside: Path) -> Iterator[list[str]]:
    """Record what is opened or changed beneath a folder: an event and a path each. `open` alone is a read."""
    _OPENED.paths, _OPENED.folder = [], os.path.realpath(outside)
    try:
        yield _OPENED.paths
    finally:
        _OPENED.folder = None
