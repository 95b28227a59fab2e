"""What tests of files on a disk do to the system, and look for there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["fail", "files_in"]


def fail(code: int) -> Callable[..., None]:
    def raise_it(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return raise_it


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
