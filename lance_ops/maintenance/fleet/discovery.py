"""Find the tables beneath a root, whoever made them: every folder that holds `_versions/`.

A table's branches lie within it and are no tables of their own. Links of a local disk are not followed. An object store
has no folders, so all objects beneath the root are listed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from lance_ops.core.errors import DatasetNotFound
from lance_ops.core.file_names import VERSIONS_DIR
from lance_ops.store import LocalStore, open_store

__all__ = ["ROOT_ITSELF", "find_tables"]

ROOT_ITSELF = "."
"""The name of a table whose folder is the root."""


def find_tables(root: str, storage_options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the paths of the tables below the root, sorted; `.` if the root itself is a table.

    Raises `DatasetNotFound` for a folder that is not there, and for a prefix of an object store without any object.
    """
    store = open_store(root, storage_options)
    if isinstance(store, LocalStore):
        if not os.path.isdir(store.root):
            raise DatasetNotFound(f"{store.uri}: there is no such folder: give one that has Lance tables beneath it")
        return tuple(sorted(_walk(store.root)))
    marker = f"/{VERSIONS_DIR}/"
    found: set[str] = set()
    is_empty = True
    for info in store.list():
        is_empty = False
        table, is_manifest, _ = f"/{info.path}".partition(marker)
        if is_manifest:
            found.add(table.lstrip("/"))
    if is_empty:
        raise DatasetNotFound(f"{store.uri}: no object is there: give a prefix that has Lance tables beneath it")
    return tuple(sorted(table or ROOT_ITSELF for table in found if not _lies_within(table, found)))


def _walk(root: str) -> Iterator[str]:
    for folder, below, _ in os.walk(root):
        if VERSIONS_DIR in below:
            yield os.path.relpath(folder, root)
            below.clear()


def _lies_within(table: str, tables: set[str]) -> bool:
    """Return whether a folder is a branch of another table."""
    parts = table.split("/") if table else []
    return any("/".join(parts[:length]) in tables for length in range(len(parts)))
