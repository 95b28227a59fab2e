"""Store objects as files beneath a directory of a local (or network) POSIX file system.

A file is written under a temporary name in its directory and then gets its name in one step (`staging`). A durable file
is synced before the call returns, together with its directory and the parent of every directory that was made for it. A
file with a new name is named before it is synced, because nobody knows the name before the call returns. A file that
replaces another is synced first. So is a file that `put_if_absent` creates, because other writers wait for its name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import NoReturn, TypeVar

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import ObjectNotFound, StoreError, UnsafePath, WriteRefused
from lance_ops.core.records import dataclass
from lance_ops.store import local
from lance_ops.store.contract import (
    Buffers,
    ByteRange,
    BytesLike,
    ObjectInfo,
    PutOutcome,
    Store,
    StoreWriter,
    View,
)
from lance_ops.store.counted_view import CountedView
from lance_ops.store.io_counters import IoCounters
from lance_ops.store.local.directory_stamps import seal_directory, stamp_directory
from lance_ops.store.local.directory_watch import watch_directory
from lance_ops.store.local.file_mapping import FileMapping
from lance_ops.store.local.made_directories import MADE_DIRECTORIES
from lance_ops.store.local.memory_map_cache import MAPPED_FILES
from lance_ops.store.paths import TEMPORARY_PREFIX, check_directory, check_path, check_paths
from lance_ops.store.ranges import check_ranges, slice_ranges

__all__ = ["LocalStore"]

_LONGEST_TICK = timedelta(milliseconds=20)
_DELETED_AT_ONCE = 1024
_READ_AT_ONCE = 1 << 30
"""Systems read less than 2 GiB in one call."""

T = TypeVar("T")
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


@dataclass(frozen=True, slots=True)
class LocalStore(Store):
    """Files beneath the directory `root`, which need not exist yet. Reads map files, and copy only short ones.

    Symbolic links are followed as long as they stay inside the root; `root` itself may be one.
    """

    reads_in_place = True

    root: str
    counters: IoCounters = field(default_factory=IoCounters, repr=False, compare=False)

    def __post_init__(self) -> None:
        if "\0" in self.root:
            raise UnsafePath(f"{self.root!r}: no NUL may stand in a path")
        root = os.path.abspath(self.root)
        object.__setattr__(self, "root", root[1:] if root.startswith("//") else root)  # POSIX lets two slashes stand

    def counted_by(self, counters: IoCounters) -> LocalStore:
        return replace(self, counters=counters)

    @property
    def uri(self) -> str:
        return self.root

    def child(self, prefix: str) -> LocalStore:
        try:
            return LocalStore(self._file(prefix), self.counters)
        except OSError as error:
            self._fail("read", prefix, error)

    def get(self, path: str) -> pa.Buffer:
        return self.view(path).whole()

    def view(self, path: str) -> View:
        try:
            view = MAPPED_FILES.get(*self._examine(check_path(path)))
        except OSError as error:
            self._fail("read", path, error)
        if isinstance(view, FileMapping):
            return CountedView(view, self.counters)
        self.counters.add_reads(1, view.buffer.size)  # a short file, which has been read whole
        return view

    def read_parts(
        self, paths: Sequence[str], parts: Sequence[Sequence[tuple[int, int, int]]], out: memoryview
    ) -> list[int] | None:
        """Read files of one directory, which is examined once. A file that is a symbolic link is not read so."""
        (directory, *others) = {path.rpartition("/")[0] for path in paths}
        names = [path.rpartition("/")[2] for path in paths]
        check_path("/".join(names))
        if others or not directory:
            return None
        found = []
        try:
            folder = os.open(self._file(directory), os.O_RDONLY | os.O_DIRECTORY)
            try:
                for name, of_file in zip(names, parts, strict=True):
                    # O_NONBLOCK: a pipe would wait for a writer.
                    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
                    try:
                        for position, size, place in of_file:
                            own = out[place : place + size]
                            is_long = size > _READ_AT_ONCE
                            found.append(
                                _read_long(file, own, position) if is_long else os.preadv(file, [own], position)
                            )
                    finally:
                        os.close(file)
            finally:
                os.close(folder)
        except OSError:
            return None
        self.counters.add_reads(len(found), sum(found))
        return found

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Buffers:
        check_ranges(path, ranges)
        view = self.view(path)
        view.will_need(*np.array(ranges, np.int64).reshape(-1, 2).T)
        return slice_ranges(self.uri_of(path), view.buffer, ranges)

    def size(self, path: str) -> int:
        status = self._status(path)
        if status is None or not stat.S_ISREG(status.st_mode):
            raise ObjectNotFound(self.uri_of(path))
        return status.st_size

    def exists(self, path: str) -> bool:
        status = self._status(path)
        return status is not None and stat.S_ISREG(status.st_mode)

    def put(self, path: str, data: BytesLike, *, durable: bool = True) -> None:
        try:
            target = self._file(path)
            local.publish(local.stage(target, lambda descriptor: local.write_all(descriptor, data)), target, durable)
        except OSError as error:
            self._fail("write", path, error)
        self.counters.add_write(memoryview(data).nbytes)

    def put_hint(self, path: str, data: BytesLike) -> None:
        """Write in place unless the file is longer: to stage and rename costs as much again as to write the hint."""
        try:
            if not self._overwrite(check_path(path), data):
                target = self._file(path)
                local.publish(
                    local.stage(target, lambda descriptor: local.write_all(descriptor, data)), target, durable=False
                )
        except OSError as error:
            self._fail("write", path, error)
        self.counters.add_write(memoryview(data).nbytes)

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        return self.put_if_absent_with_callbacks(path, data, after=after, prepare=lambda: True, follow_up=lambda: None)

    def put_if_absent_with_callbacks(
        self,
        path: str,
        data: BytesLike,
        *,
        after: Iterable[str] = (),
        prepare: Callable[[], bool],
        follow_up: Callable[[], object],
    ) -> PutOutcome:
        needed: list[str] = []
        try:
            target, taken = self._examine(check_path(path))
            needed = [self._file(other) for other in after]
            if taken is not None:
                return PutOutcome.EXISTS
            staged = local.stage(target, lambda descriptor: local.write_all(descriptor, data))
            try:
                with local.Syncing([staged, *local.with_names(needed)]):
                    is_wanted = prepare()
            except BaseException:
                local.discard(staged)
                raise
        except OSError as error:  # the name is not given yet, so nothing can have appeared
            reason = str(error.strerror or error)
            if error.filename in needed:
                reason = f"{error.filename}, which must be durable first, cannot be synced: {reason}"
            raise WriteRefused(f"cannot write {self.uri_of(path)}: {reason}") from error
        if not is_wanted:
            local.discard(staged)
            return PutOutcome.ABANDONED
        try:
            try:
                created = local.link_if_absent(staged, target)
            except BaseException:
                local.discard(staged)
                raise
            with suppress(OSError):
                os.unlink(staged)
            if created:
                self.counters.add_write(memoryview(data).nbytes)
                with local.Syncing([os.path.dirname(target)]):
                    follow_up()
        except OSError as error:
            self._fail("write", path, error)
        return PutOutcome.CREATED if created else PutOutcome.EXISTS

    def make_durable(self, *paths: str) -> None:
        files: dict[str, str] = {}
        try:
            files.update((self._file(path), path) for path in paths)
            local.sync(local.with_names(files))
        except OSError as error:
            self._fail("sync", files.get(error.filename) or ", ".join(paths), error)

    def open_writer(self, path: str, *, durable: bool = True) -> StoreWriter:
        try:
            return local.LocalWriter(self._file(path), durable, partial(self._fail, "write", path), self.counters)
        except OSError as error:
            self._fail("write", path, error)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._walk(check_directory(prefix), temporary=False)

    def list_temporary(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._walk(check_directory(prefix), temporary=True)

    def list_names(self, directory: str, limit: int | None = None) -> Sequence[str]:
        return self._on_directory(check_directory(directory), os.listdir) or ()

    def list_folders(self, directory: str) -> Sequence[str]:
        return self._on_directory(check_directory(directory), _folders_in) or ()

    def directory_stamp(self, directory: str) -> str | None:
        return self._on_directory(check_directory(directory), stamp_directory)

    def seal_directory(self, directory: str) -> str | None:
        return self._on_directory(check_directory(directory), seal_directory)

    def watch_directory(self, directory: str) -> AbstractContextManager[Callable[[], frozenset[str] | None]]:
        watch = self._on_directory(check_directory(directory), watch_directory)
        return Store.watch_directory(self, directory) if watch is None else watch

    def delete(self, path: str) -> None:
        try:
            target = self._file(path)
            MAPPED_FILES.forget(target)
            os.unlink(target)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            if os.path.isdir(f"{self.root}/{path}"):  # EISDIR or EPERM, by system; a directory is no object
                return
            self._fail("delete", path, error)
        self._prune(os.path.dirname(target))

    @property
    def deleted_at_once(self) -> int:
        """Many: the system locks a directory while it removes a name, so threads would wait for each other."""
        return _DELETED_AT_ONCE

    def delete_several(self, paths: Sequence[str]) -> set[str]:
        """Remove files as `delete` does, but look at each directory once. `delete` removes what is no plain file."""
        folders: dict[str, str] = {}
        removed: list[str] = []
        others: list[str] = []
        check_paths(paths)
        for path in paths:
            above, _, name = path.rpartition("/")
            try:
                folder = folders.get(above) or folders.setdefault(above, self._locate(above))
                target = f"{folder}/{name}"
                if stat.S_ISREG(os.lstat(target).st_mode):
                    os.unlink(target)
                    removed.append(target)
                else:
                    others.append(path)
            except FileNotFoundError:
                pass
            except OSError:
                others.append(path)
        MAPPED_FILES.forget(*removed)
        failed = Store.delete_several(self, others)
        for folder in folders.values():
            self._prune(folder)
        return failed

    def clear(self) -> None:
        """Remove everything in the directory, and the directory unless it was named by a symbolic link."""
        Store.clear(self)  # `super()` does not work in a dataclass with slots
        for folder, names, others in os.walk(self.root, topdown=False):
            for path in (f"{folder}/{name}" for name in (*names, *others)):
                with suppress(OSError):  # another writer has written there since
                    os.unlink(path) if os.path.islink(path) else os.rmdir(path)
        with suppress(OSError):
            os.rmdir(self.root)

    def copy(self, source: str, target: str) -> None:
        check_path(target)
        with ExitStack() as stack:
            try:
                file = stack.enter_context(open(self._file(source), "rb", buffering=0))
            except OSError as error:
                self._fail("read", source, error)
            try:
                destination = self._file(target)
                local.publish(
                    local.stage(destination, lambda descriptor: local.copy_all(file, descriptor)),
                    destination,
                    durable=True,
                )
                size = os.fstat(file.fileno()).st_size
            except OSError as error:
                self._fail("write", target, error)
        self.counters.add_reads(1, size)
        self.counters.add_write(size)

    def now(self) -> datetime:
        """Return the file system's time, which on a network mount is another machine's; our time where we cannot write.

        The system stamps a file with the last tick of a clock. A stamp between our time before and after the file was
        made is from our clock, however long the system paused this thread. Then our time is the same and finer.
        """
        before = datetime.now(UTC)
        if not os.path.isdir(self.root):
            return before
        try:
            staged, descriptor = local.create_temporary(self.root)
        except OSError:
            return datetime.now(UTC)
        try:
            stamp, after = datetime.fromtimestamp(os.fstat(descriptor).st_mtime, UTC), datetime.now(UTC)
        finally:
            os.close(descriptor)
            local.discard(staged)
        return after if before - _LONGEST_TICK < stamp <= after else stamp

    def _file(self, path: str) -> str:
        return self._examine(check_path(path))[0]

    def _locate(self, path: str) -> str:
        """Return the absolute path, as `_examine` does."""
        return self._examine(path)[0] if path else self.root

    def _examine(self, path: str) -> tuple[str, os.stat_result | None]:
        """Return the absolute path beneath the root and its `lstat` result, None if it is absent.

        Raises `UnsafePath` if a symbolic link on the way leads out of the root, `OSError` where the path cannot be
        read.
        """
        full, status = self.root if self.root != "/" else "", None
        for part in path.split("/"):
            full = f"{full}/{part}"
            try:
                status = os.lstat(full)
            except (FileNotFoundError, NotADirectoryError):
                status = None
                continue
            if stat.S_ISLNK(status.st_mode):
                root = os.path.realpath(self.root)
                if os.path.commonpath([root, os.path.realpath(full)]) != root:
                    raise UnsafePath(f"{self.uri_of(path)}: a symbolic link leads out of the root")
        return full, status

    def _status(self, path: str) -> os.stat_result | None:
        """Return the `stat` result of a path, with symbolic links followed; None if it is absent."""
        try:
            file, status = self._examine(check_path(path))
            return os.stat(file) if status is not None and stat.S_ISLNK(status.st_mode) else status
        except _ABSENT:  # a link to nothing
            return None
        except OSError as error:
            self._fail("read", path, error)

    def _on_directory(self, directory: str, action: Callable[[int], T]) -> T | None:
        """Open a directory and return what `action` returns for its descriptor; None if the directory is absent."""
        try:
            descriptor = self._open(directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                return action(descriptor)
            finally:
                os.close(descriptor)
        except _ABSENT:
            return None
        except OSError as error:
            self._fail("list", directory, error)

    def _open(self, path: str, flags: int) -> int:
        """Open a path. If its last part is not a symbolic link, that part needs no check before."""
        above, _, name = path.rpartition("/")
        try:
            return os.open(f"{self._locate(above)}/{name}", flags | os.O_NOFOLLOW, local.FILE_MODE)
        except OSError:
            return os.open(self._locate(path), flags, local.FILE_MODE)

    def _overwrite(self, path: str, data: BytesLike) -> bool:
        """Write over a file from its start; return False if it is longer, has two links, or lacks a directory."""
        try:
            descriptor = self._open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_size > memoryview(data).nbytes:
                return False
            local.write_all(descriptor, data)
        finally:
            os.close(descriptor)
        return True

    def _fail(self, verb: str, path: str, error: OSError) -> NoReturn:
        """Raise a system error as a `StoreError`, `ObjectNotFound` if the path is absent."""
        if isinstance(error, StoreError):
            raise error
        if verb != "write" and isinstance(error, _ABSENT):
            raise ObjectNotFound(self.uri_of(path)) from error
        raise StoreError(f"cannot {verb} {self.uri_of(path)}: {error.strerror or error}") from error

    def _walk(self, prefix: str, *, temporary: bool) -> Iterator[ObjectInfo]:
        """Yield the files beneath a directory: the temporary ones, or all others."""
        folders = [prefix]
        while folders:
            folder = folders.pop()
            above = f"{folder}/" if folder else ""
            files: list[os.DirEntry[str]] = []
            below: list[str] = []
            try:
                with os.scandir(self._locate(folder)) as found:
                    for entry in found:
                        if entry.is_dir(follow_symlinks=False):
                            below.append(above + entry.name)
                        elif entry.name.startswith(TEMPORARY_PREFIX) is temporary:
                            files.append(entry)
            except _ABSENT:
                continue
            except OSError as error:
                self._fail("list", folder, error)
            folders += sorted(below)
            for entry in sorted(files, key=attrgetter("name")):
                path = above + entry.name
                try:
                    status = os.stat(self._locate(path)) if entry.is_symlink() else entry.stat()
                except FileNotFoundError:  # deleted since it was listed
                    continue
                if stat.S_ISREG(status.st_mode):
                    yield ObjectInfo(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def _prune(self, directory: str) -> None:
        """Remove empty directories upwards; those directly in the root, and the root, only if this process made them.

        Other writers rely on them: they do not sync the root for a directory that was there before.
        """
        while directory != self.root and os.path.dirname(directory) != self.root:
            try:
                os.rmdir(directory)
            except OSError:
                return
            directory = os.path.dirname(directory)
        MADE_DIRECTORIES.remove(directory)


def _folders_in(descriptor: int) -> list[str]:
    """Return the names of the directories in an open directory, without symbolic links to others."""
    with os.scandir(descriptor) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _read_long(file: int, out: memoryview, position: int) -> int:
    """Read until `out` is full or the file ends; return how many bytes were read."""
    read = 0
    while read < len(out):
        asked = out[read : read + _READ_AT_ONCE]
        found = os.preadv(file, [asked], position + read)
        read += found
        if found < len(asked):
            break
    return read
