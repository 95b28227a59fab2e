"""What outlives a power cut on a local file system: the contents of files, and the names that lead to them.

A file is durable when it was synced, and so was its directory, and the directory above that if the one below was just
made, and so on. Directories made by this process are remembered until their names are durable.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from lance_ops.store.fsync_all import fsync_all

__all__ = ["make_directory", "sync", "with_names"]

_AT_ONCE = 64  # open files
# Directories that this process made and whose names a power cut may take back, and which making of each it was.
_UNSYNCED: dict[str, object] = {}


def make_directory(directory: str) -> None:
    """Make a directory and those above it, where they are not there."""
    if os.path.isdir(directory):
        return
    make_directory(os.path.dirname(directory))
    _UNSYNCED[directory] = object()  # before it can be seen: whoever finds it there must find it here
    with suppress(FileExistsError):
        os.mkdir(directory)


def with_names(files: Iterable[str]) -> list[str]:
    """Return files and the directories they lie in: what `sync` must be given so that they can be found again."""
    listed = list(files)
    return [*listed, *dict.fromkeys(map(os.path.dirname, listed))]


def sync(paths: Iterable[str]) -> None:
    """Sync files and directories, at the same time, and the names of directories on the way that this process made."""
    made = {}
    todo = dict.fromkeys(paths)
    for path in list(todo):
        above = path if path in _UNSYNCED else os.path.dirname(path)
        while above in _UNSYNCED:
            made[above] = _UNSYNCED[above]
            above = os.path.dirname(above)
            todo[above] = None
    waiting = list(todo)
    for start in range(0, len(waiting), _AT_ONCE):
        _sync_some(waiting[start : start + _AT_ONCE])
    for path, making in made.items():
        if _UNSYNCED.get(path) is making:  # not made anew meanwhile
            del _UNSYNCED[path]


def _sync_some(paths: list[str]) -> None:
    descriptors: list[int] = []
    try:
        descriptors.extend(os.open(path, os.O_RDONLY) for path in paths)
        fsync_all(descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
