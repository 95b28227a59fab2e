"""Read page_lookup, and keep what it says in the process: every new handle opens its indices anew.

An entry is used only while the file has the very bytes that it was read from, so the cache answers as the file would.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

import pyarrow as pa

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader
from lance_ops.indices.btree.layout import PAGE_LOOKUP, value_type_of
from lance_ops.indices.btree.page_lookup import PageLookup
from lance_ops.store import Store, View

__all__ = ["LOOKUP_FILES", "LookupFile", "LookupFileCache"]

_LONGEST_BYTES = 64 << 10
"""Longer files take much memory once they are Python values. So many bytes describe some ten million numbers."""


@dataclass(frozen=True)
class LookupFile:
    """The open page_lookup, its rows, the type of the indexed values, and the lookup that is made of them.

    A remote file of at most 1 MiB stays in memory, so that a copy of it needs no request.
    """

    file: FileReader
    table: pa.Table
    value_type: pa.DataType
    pages: PageLookup

    @classmethod
    def read(cls, store: Store, size_bytes: int | None, view: View | None = None) -> LookupFile:
        """Read the file of an index; raises as `PageLookup.from_table` does, and for a file of version 0.1.

        `size_bytes` is the recorded size. `view` has the bytes if the caller has read them in place.
        """
        file = FileReader(store, PAGE_LOOKUP, size_bytes, verifies=True, view=view, whole=True)
        if file.version is FileVersion.V0_1:  # such files have no nulls, so a null value looks like a 0
            raise UnsupportedFeature("a B-tree in files of version 0.1 (build the index again)", file.path)
        value_type = value_type_of(file.schema.to_arrow_storage(), file.path)
        table = file.read()
        return cls(file, table, value_type, PageLookup.from_table(table, file.path))


class LookupFileCache:
    """Caches short files by their URI and recorded size, the ones used last."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.reset()

    def read(self, store: Store, size_bytes: int | None) -> LookupFile:
        """Return what `LookupFile.read` does. A file that is not read in place, or is long, is not cached."""
        if not store.reads_in_place:
            return LookupFile.read(store, size_bytes)
        view = store.view(PAGE_LOOKUP)
        if view.buffer.size > _LONGEST_BYTES:
            return LookupFile.read(store, size_bytes, view)
        data = view.whole().to_pybytes()  # a copy, because a mapped file may change
        key = store.uri_of(PAGE_LOOKUP), size_bytes
        with self._lock:
            cached = self._files.get(key)
        if cached is not None and cached[0] == data:
            return cached[1]
        found = LookupFile.read(store, size_bytes, view)
        with self._lock:
            self._files[key] = data, found
            self._files.move_to_end(key)
            while len(self._files) > self._capacity:
                self._files.popitem(last=False)
        return found

    def reset(self) -> None:
        """Empty the cache and renew the lock: in a forked child, the thread that held the lock does not exist."""
        self._files: OrderedDict[tuple[str, int | None], tuple[bytes, LookupFile]] = OrderedDict()
        self._lock = threading.Lock()


LOOKUP_FILES = LookupFileCache(capacity=16)
os.register_at_fork(after_in_child=LOOKUP_FILES.reset)
