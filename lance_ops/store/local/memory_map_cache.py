"""Keep memory maps of the files read last, for all local stores of a process.

A map outlives the file's name: a reader that holds a buffer keeps its bytes when clean-up removes the file or `put`
replaces it. A map does not survive a file that is cut short in place, so no file ever is.

A short file is read anew each time instead. That costs a third to a sixth of mapping it and touching its pages.

A view tells by its `identity` that a file did not change, so that readers need not decode it again.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from functools import lru_cache

import pyarrow as pa

from lance_ops.core.tricks import Trick
from lance_ops.store.contract import READ_WHOLE_BYTES, View
from lance_ops.store.local.file_mapping import FileMapping

__all__ = ["MAPPED_FILES", "MapCache"]

_Identity = tuple[int, int, int, int]
_MOUNTS = "/proc/self/mountinfo"
_COARSE_TICK_NS, _FINE_TICK_NS = 2 * 10**9, 10**8
"""The longest time between two ticks of a file system's clock: of any, and of a local one finer than a millisecond.

FAT counts in steps of 2 s. Linux advances the clock of local file systems at least every 10 ms; the rest is a margin.
The clock of a network file system is its server's, which may lag behind: one that lags by more than 2 s is not noticed.
"""

_LOCAL_TYPES = {"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
"""File systems whose times of change this machine's kernel sets."""


class MapCache:
    """The files read last, as mapped views.

    An entry is valid while the path names the same file by device, inode, size and time of modification. The map pins
    the inode, so the file system cannot give its number to another file meanwhile.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._maps: OrderedDict[str, tuple[_Identity, FileMapping]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str, status: os.stat_result | None = None) -> View:
        """Return a view of the whole file. Raises `OSError`, also if the path names no regular file.

        `status` is the result of an `lstat` that the caller has just made, if any.
        """
        if status is None or stat.S_ISLNK(status.st_mode):
            status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a regular file", path)
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        settled = _settled_identity(status)
        if status.st_size <= READ_WHOLE_BYTES:
            data = _read(path, status.st_size + 1)
            if len(data) == status.st_size:  # else another file has the name by now, or not all was read
                return View(pa.py_buffer(data), settled)
        with self._lock:
            entry = self._maps.get(path)
            if entry is not None and entry[0] == identity:
                self._maps.move_to_end(path)
                entry[1].identity = settled
                return entry[1]
        if not Trick.FILE_MAPPING.is_on():
            return _map_with_descriptor(path)  # not kept: each of them holds a descriptor
        mapping = _map(path)
        mapping.identity = settled
        with self._lock:
            self._maps[path] = (identity, mapping)
            self._maps.move_to_end(path)
            while len(self._maps) > self._capacity:
                self._maps.popitem(last=False)
        return mapping

    def forget(self, *paths: str) -> None:
        """Drop the maps of files that are removed, so that their disk space is freed."""
        with self._lock:
            for path in paths:
                self._maps.pop(path, None)

    def reset(self) -> None:
        """Start empty with a new lock: in a forked child, a thread that does not exist there may hold the old lock."""
        self._maps = OrderedDict()
        self._lock = threading.Lock()


def _settled_identity(status: os.stat_result) -> Hashable | None:
    """Return what no other bytes will have; None for a file that may change within the same tick of its clock.

    The system sets the time of the last change (`ctime`) at every write and at every change of the other times.
    """
    if time.time_ns() - status.st_ctime_ns <= _longest_tick_ns(status):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _longest_tick_ns(status: os.stat_result) -> int:
    """Return how long the clock may stand still that set a file's time of change."""
    is_fine = status.st_ctime_ns % 10**6 and _is_local(status.st_dev)
    return _FINE_TICK_NS if is_fine else _COARSE_TICK_NS


@lru_cache(maxsize=64)
def _is_local(device: int) -> bool:
    """Return whether a device is known to be a local file system; the answer is kept for the life of the process."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            return any(_mounted(line) == (device, True) for line in mounts)
    except OSError:
        return False


def _mounted(line: str) -> tuple[int, bool]:
    """Return the device of a line of `mountinfo` (proc(5)), and whether its file system is local."""
    before, _, after = line.partition(" - ")
    major, _, minor = before.split()[2].partition(":")
    return os.makedev(int(major), int(minor)), after.split()[0] in _LOCAL_TYPES


def _map(path: str) -> FileMapping:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return FileMapping(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def _map_with_descriptor(path: str) -> View:
    with open(path, "rb") as file:
        return View(pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))


def _read(path: str, size: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


MAPPED_FILES = MapCache(capacity=1024)
os.register_at_fork(after_in_child=MAPPED_FILES.reset)
