"""Cache open data files, so that a later read of a few rows does not read their metadata again.

An open file is small in memory: positions of pages and chunks, dictionaries, symbol tables. Of a remote file that is no
larger than the read that opens it, all bytes are kept. No file descriptor stays open.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress

from lance_ops.file import FileReader
from lance_ops.table.manifest import ObjectLocation

__all__ = ["OpenFiles"]


class OpenFiles:
    """The most recently read data files of a dataset; they never change, so one reader serves every version.

    There is no lock, because a forked child could inherit it locked. Each step is atomic in the interpreter, and two
    threads that miss the same file both open it.
    """

    def __init__(self, capacity_bytes: int) -> None:
        """Cache files that take about `capacity_bytes` of memory; the file that was read last stays in any case."""
        self._capacity_bytes = capacity_bytes
        self._readers: OrderedDict[str, FileReader] = OrderedDict()
        self._memory_bytes: dict[str, int] = {}

    def open(self, location: ObjectLocation, size_bytes: int) -> FileReader:
        """Return a reader; a `size_bytes` of 0 means an unknown size. Raises as `FileReader` does."""
        name = location.uri
        reader = self._readers.get(name)
        if reader is None:
            reader = self._readers[name] = FileReader(location.store, location.path, size_bytes or None)
            self._memory_bytes[name] = reader.memory_bytes
            self._evict()
        with suppress(KeyError):  # another thread evicted it meanwhile
            self._readers.move_to_end(name)
        return reader

    def _evict(self) -> None:
        """Remove the least recently read files until the others fit the capacity."""
        memory_bytes = sum(list(self._memory_bytes.values()))
        with suppress(KeyError):
            while memory_bytes > self._capacity_bytes and len(self._readers) > 1:
                name, _ = self._readers.popitem(last=False)
                memory_bytes -= self._memory_bytes.pop(name)
