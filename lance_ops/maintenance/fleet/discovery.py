"""Find the tables beneath a root, whoever made them: every folder that holds `_versions/`.

A table's branches lie within it and are no tables of their own. Links of a local disk are not followed. In an object
store each folder above a table, and each table's own, is listed by a request; what is beneath a table is not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from lance_ops.core.errors import DatasetNotFound
from lance_ops.core.file_names import VERSIONS_DIR
from lance_ops.core.threads import map_ordered
from lance_ops.store import LocalStore, Store, open_store

__all__ = ["ROOT_ITSELF", "find_tables", "why_excluded"]

ROOT_ITSELF = "."
"""The name of a table whose folder is the root."""

_AT_ONCE = 16  # requests


def find_tables(root: str, storage_options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the paths of the tables below the root, sorted; `.` if the root itself is a table.

    Raises `DatasetNotFound` for a folder that is not there, and for a prefix of an object store without any object.
    """
    store = open_store(root, storage_options)
    if not isinstance(store, LocalStore):
        return tuple(sorted(_walk_store(store)))
    if not os.path.isdir(store.root):
        raise DatasetNotFound(f"{store.uri}: there is no such folder: give one that has Lance tables beneath it")
    return tuple(sorted(_walk(store.root)))


def why_excluded(globs: Sequence[str]) -> Callable[[str], str | None]:
    """Return a function that says of a table's path which glob excludes it; None if none does. `*` matches `/`, too."""

    def reason(table: str) -> str | None:
        glob = next((each for each in globs if fnmatchcase(table, each)), None)
        return None if glob is None else f"excluded by {glob}"

    return reason


def _walk(root: str) -> Iterator[str]:
    for folder, below, _ in os.walk(root):
        if VERSIONS_DIR in below:
            yield os.path.relpath(folder, root)
            below.clear()


def _walk_store(store: Store) -> Iterator[str]:
    """Yield the tables of an object store, level by level; the folders of a level are listed side by side."""
    level = [""]
    while level:
        names_of = list(map_ordered(store.list_folders, level, min(_AT_ONCE, len(level)), _AT_ONCE))
        if level == [""] and not names_of[0] and not store.list_names("", 1):
            raise DatasetNotFound(f"{store.uri}: no object is there: give a prefix that has Lance tables beneath it")
        below = []
        for folder, names in zip(level, names_of, strict=True):
            if VERSIONS_DIR in names:
                yield folder or ROOT_ITSELF
            else:
                below += [f"{folder}/{name}".lstrip("/") for name in names]
        level = below
