"""Data files kept open, so that reading a few rows again does not begin with their metadata.

What an open file knows is small: where pages and chunks are, dictionaries, symbol tables; and all bytes of a file in a
remote store that is no larger than what is read to open it. It holds no descriptor.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress

from lance_ops.file import FileReader
from lance_ops.table.manifest import ObjectLocation

__all__ = ["OpenFiles"]


class OpenFiles:
    """The most recently read data files of a dataset; they never change, so one serves every version.

    There is no lock for a forked child to find held: each step is one that the interpreter does not interrupt, and
    two threads that miss the same file open it twice.
    """

    def __init__(self, capacity_bytes: int) -> None:
        """Keep what takes about so many bytes of memory, and the file that was read last."""
        self._capacity_bytes = capacity_bytes
        self._readers: OrderedDict[str, FileReader] = OrderedDict()
        self._held_bytes: dict[str, int] = {}

    def open(self, place: ObjectLocation, size_bytes: int) -> FileReader:
        """Return a reader; a `size_bytes` of 0 is not recorded. Raises what opening a file does."""
        name = place.uri
        reader = self._readers.get(name)
        if reader is None:
            reader = self._readers[name] = FileReader(place.store, place.path, size_bytes or None)
            self._held_bytes[name] = reader.held_bytes
            self._let_go()
        with suppress(KeyError):  # another thread has let go of it meanwhile
            self._readers.move_to_end(name)
        return reader

    def _let_go(self) -> None:
        """Forget what was not read for longest, until the rest is small enough."""
        held_bytes = sum(list(self._held_bytes.values()))
        with suppress(KeyError):
            while held_bytes > self._capacity_bytes and len(self._readers) > 1:
                name, _ = self._readers.popitem(last=False)
                held_bytes -= self._held_bytes.pop(name)
