"""What has been read and may be needed again: the files and indices of a session, and a version's deletion vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.snapshot.caches.open_file_cache import OpenFiles
    from lance_ops.snapshot.caches.read_cache import ReadCache
    from lance_ops.snapshot.caches.session import Session

__all__ = ["OpenFiles", "ReadCache", "Session"]

_MODULES = {
    "OpenFiles": "open_file_cache",
    "ReadCache": "read_cache",
    "Session": "session",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
