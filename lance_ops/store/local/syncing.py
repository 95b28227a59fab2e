"""Make files durable on a local file system: sync their contents and the directories that hold their names.

A file is durable when it and its directory have been synced. If the directory is new, its parent must have been synced
too, and so on upwards. Directories that this process made are remembered until their names are durable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from types import TracebackType

from lance_ops.store import local
from lance_ops.store.local.begin_fsync import MOST_AT_ONCE, begin_fsync
from lance_ops.store.local.made_directories import MADE_DIRECTORIES

__all__ = ["Syncing", "make_directory", "sync", "with_names"]

_LEAST_FOR_SYNCFS = 1024
"""The fewest paths, after the first `MOST_AT_ONCE`, for which a whole file system is synced. Fewer take about a tenth
of a second by themselves."""

# Directories that this process made and whose names are not durable yet, each with a token of its making.
_UNSYNCED: dict[str, object] = {}


def make_directory(directory: str) -> None:
    """Make a directory and its parents where they are missing."""
    if os.path.isdir(directory):
        return
    make_directory(os.path.dirname(directory))
    _UNSYNCED[directory] = object()  # before it exists: another thread that sees the directory must find it here
    MADE_DIRECTORIES.make(directory)


def with_names(files: Iterable[str]) -> list[str]:
    """Return files and their directories: both must be synced so that the files are found after a power cut."""
    listed = list(files)
    return [*listed, *dict.fromkeys(map(os.path.dirname, listed))]


def sync(paths: Iterable[str]) -> None:
    """Sync files and directories at the same time, and the parents of new directories on the way to them."""
    with Syncing(paths):
        pass


class Syncing:
    """Syncs as `sync` does while its block runs; the end of the block waits and raises `OSError` if a sync failed.

    If the block raises, files may or may not be synced.
    """

    __slots__ = ("_finish", "_made", "_paths")

    def __init__(self, paths: Iterable[str]) -> None:
        self._made: dict[str, object] = {}
        self._paths = list(self._with_new_names(paths))

    def __enter__(self) -> None:
        self._finish = _begin(self._paths[:MOST_AT_ONCE])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._finish()
        except OSError:
            if kind is None:
                raise
        if kind is not None:
            return
        rest = self._paths[MOST_AT_ONCE:]
        if len(rest) >= _LEAST_FOR_SYNCFS:
            rest = local.sync_together(rest)
        for start in range(0, len(rest), MOST_AT_ONCE):
            _begin(rest[start : start + MOST_AT_ONCE])()
        for path, making in self._made.items():
            if _UNSYNCED.get(path) is making:  # not removed and made again meanwhile
                del _UNSYNCED[path]

    def _with_new_names(self, paths: Iterable[str]) -> Iterable[str]:
        """Return the paths, each once, and the parents of directories above them whose names are not durable."""
        todo = dict.fromkeys(paths)
        for path in list(todo) if _UNSYNCED else ():
            above = path if path in _UNSYNCED else os.path.dirname(path)
            while above in _UNSYNCED:
                self._made[above] = _UNSYNCED[above]
                above = os.path.dirname(above)
                todo[above] = None
        return todo


def _begin(paths: list[str]) -> Callable[[], None]:
    """Open files and directories and begin to sync them; return a function that waits and closes them."""
    descriptors: list[int] = []

    def close() -> None:
        for descriptor in descriptors:
            os.close(descriptor)

    try:
        descriptors.extend(os.open(path, os.O_RDONLY) for path in paths)
        wait = begin_fsync(descriptors)
    except BaseException:
        close()
        raise

    def finish() -> None:
        try:
            wait()
        finally:
            close()

    return finish
