"""Memory maps of local files, shared by all local stores of a process.

A map outlives the file's name: a reader that holds a buffer keeps its bytes when clean-up deletes the file or `put`
replaces it. Files are never cut short in place, which is the one thing a map does not survive.
A short file is read instead, each time: that costs a third to a sixth of what mapping it and touching its pages does.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections import OrderedDict

import pyarrow as pa

from lance_ops.store.contract import View
from lance_ops.store.local.file_mapping import FileMapping

__all__ = ["MAPS", "MapCache"]

_Identity = tuple[int, int, int, int]
_SHORT_BYTES = 128 << 10


class MapCache:
    """The most recently read files, mapped.

    An entry serves only while the path still names the same file, by device, inode, size and modification time. The
    map itself pins the inode, so that the file system cannot give its number to another file meanwhile.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._maps: OrderedDict[str, tuple[_Identity, FileMapping]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str, status: os.stat_result | None = None) -> View:
        """Return the whole file, read only if it is short. Raises `OSError`, also for what is not a regular file.

        `status` is what was just said of the path, links unfollowed.
        """
        if status is None or stat.S_ISLNK(status.st_mode):
            status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a regular file", path)
        if status.st_size <= _SHORT_BYTES:
            data = _read(path, status.st_size + 1)
            if len(data) == status.st_size:  # else it is another file by now, or the system gave less than it has
                return View(pa.py_buffer(data))
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        with self._lock:
            entry = self._maps.get(path)
            if entry is not None and entry[0] == identity:
                self._maps.move_to_end(path)
                return entry[1]
        mapping = _map(path)
        with self._lock:
            self._maps[path] = (identity, mapping)
            self._maps.move_to_end(path)
            while len(self._maps) > self._capacity:
                self._maps.popitem(last=False)
        return mapping

    def forget(self, path: str) -> None:
        """Let go of a file, so that deleting it frees its disk space."""
        with self._lock:
            self._maps.pop(path, None)

    def reset(self) -> None:
        """Start empty and unlocked: in a forked child the lock may be held by a thread that does not exist there."""
        self._maps = OrderedDict()
        self._lock = threading.Lock()


def _map(path: str) -> FileMapping:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return FileMapping(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def _read(path: str, size: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


MAPS = MapCache(capacity=1024)
os.register_at_fork(after_in_child=MAPS.reset)
