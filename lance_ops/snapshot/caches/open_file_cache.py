"""Cache open data files, so that a later read of a few rows does not read their metadata again.

An open file is small in memory: positions of pages and chunks, dictionaries, symbol tables. All bytes of a remote file
are kept if the read that opens it reads the whole file. No file descriptor stays open.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lance_ops import file
from lance_ops.snapshot.caches.bounded_cache import BoundedCache
from lance_ops.store import View
from lance_ops.table.manifest import ObjectLocation

if TYPE_CHECKING:
    from lance_ops.file import FileReader

__all__ = ["OpenFiles"]

_MAX_NAMES = 100_000
"""When more files were named, all are forgotten: those that are read still are named again soon."""


class OpenFiles:
    """The most recently read data files; they never change, so one reader serves every version."""

    def __init__(self, capacity_bytes: int) -> None:
        """Cache files that take about `capacity_bytes` of memory; the file that was read last stays in any case."""
        self._readers: BoundedCache[str, FileReader] = BoundedCache(
            capacity_bytes, lambda reader: reader.memory_bytes, least=1
        )
        self._named: set[str] = set()

    def open(
        self, location: ObjectLocation, size_bytes: int, view: View | None = None, *, whole: bool = False
    ) -> FileReader:
        """Return a reader; a `size_bytes` of 0 means an unknown size. Raises as `FileReader` does.

        `view` has the file's bytes if the caller has read them already. They are not kept. `whole` is as in
        `FileReader`.
        """
        store, path = location
        return self._readers.get(
            location.uri, lambda: file.FileReader(store, path, size_bytes or None, view=view, whole=whole)
        )

    def are_read_again(self, names: Iterable[str]) -> bool:
        """Return whether all files of these names were named here before; from now on they were.

        A file that is read for the first time may be the last one that is read of its kind. To open files together is
        faster then. A file that is read again is worth opening by itself, since it stays open.
        """
        known = len(self._named)
        if known > _MAX_NAMES:
            self._named, known = set(), 0
        self._named.update(names)
        return len(self._named) == known

    @property
    def memory_bytes(self) -> int:
        """About how many bytes of memory the files take."""
        return self._readers.memory_bytes
