"""A directory of a local (or network) POSIX file system.

Whatever becomes visible was written to a temporary file in the same directory first, fsynced, then named in one step;
the directory is fsynced before the call returns, and so is the parent of every directory made on the way. That comes
last: a file system with a journal has written such parents down by then, together with the file. A writer's file whose
name is new is named before it is fsynced: nobody knows the name before `close` returns.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from types import TracebackType
from typing import BinaryIO

import pyarrow as pa

from lance_ops.core.errors import ObjectNotFound, StoreError, UnsafePath, WriteRefused
from lance_ops.store.contract import Buffers, ByteRange, BytesLike, ObjectInfo, PutOutcome, Store, StoreWriter
from lance_ops.store.exclusive_name import take_name
from lance_ops.store.maps import MAPS
from lance_ops.store.paths import TEMPORARY_PREFIX, check_directory, check_path, is_temporary
from lance_ops.store.ranges import check_ranges, slice_ranges
from lance_ops.store.reserve import reserve
from lance_ops.store.writeback import start_writeback

__all__ = ["LocalStore"]

_WRITE_BUFFER_BYTES = 1 << 20
_COPY_BYTES = 4 << 20
# A file's bytes are on their way to the disk in pieces of this size while the next are being made.
_FLUSH_BYTES = 4 << 20
# What is at least this long gets its room on the disk in one piece.
_RESERVED_BYTES = 256 << 10
_DIRECTORY_ATTEMPTS = 10
# Directories that this process made and whose names a power cut may take back, and which making of each it was.
_UNSYNCED: dict[str, object] = {}
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


@dataclass(frozen=True, slots=True)
class LocalStore(Store):
    """Files beneath the directory `root`, which need not exist yet. Reads are memory-mapped and copy nothing.

    Symbolic links are followed as long as they stay inside the root; `root` itself may be one.
    """

    reads_in_place = True

    root: str

    def __post_init__(self) -> None:
        if "\0" in self.root:
            raise UnsafePath(f"{self.root!r}: no NUL may stand in a path")
        object.__setattr__(self, "root", os.path.abspath(self.root))

    @property
    def uri(self) -> str:
        return self.root

    def child(self, prefix: str) -> LocalStore:
        return LocalStore(self._file(prefix))

    def get(self, path: str) -> pa.Buffer:
        file = self._file(path)
        with self._translating("read", path):
            return MAPS.get(file)

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Buffers:
        check_ranges(path, ranges)
        return slice_ranges(self.uri_of(path), self.get(path), ranges)

    def size(self, path: str) -> int:
        file = self._file(path)
        with self._translating("read", path):
            status = os.stat(file)
        if not stat.S_ISREG(status.st_mode):
            raise ObjectNotFound(self.uri_of(path))
        return status.st_size

    def exists(self, path: str) -> bool:
        try:
            self.size(path)
        except ObjectNotFound:
            return False
        return True

    def put(self, path: str, data: BytesLike, *, durable: bool = True) -> None:
        target = self._file(path)
        with self._translating("write", path):
            staged = _stage(target, lambda file: _write_all(file, data), durable)
            _publish(staged, target, durable)

    def put_hint(self, path: str, data: BytesLike) -> None:
        """Write in place where that cuts nothing short: a new file costs more than all else that a hint takes."""
        target = self._file(path)
        with self._translating("write", path):
            if not _overwrite(target, data):
                _publish(_stage(target, lambda file: _write_all(file, data), durable=False), target, durable=False)

    def put_if_absent(self, path: str, data: BytesLike) -> PutOutcome:
        target = self._file(path)
        try:
            staged = _stage(target, lambda file: _write_all(file, data), durable=True)
        except OSError as error:  # before the name is taken, nothing can have appeared
            raise WriteRefused(f"cannot write {self.uri_of(path)}: {error.strerror or error}") from error
        with self._translating("write", path):
            try:
                created = take_name(staged, target)
            finally:
                _discard(staged)
            if created:
                _sync_names(os.path.dirname(target))
        return PutOutcome.CREATED if created else PutOutcome.EXISTS

    def make_durable(self, path: str) -> None:
        file = self._file(path)
        with self._translating("sync", path):
            _sync(file, os.O_RDONLY)
            _sync_names(os.path.dirname(file))

    def open_writer(self, path: str) -> StoreWriter:
        target = self._file(path)
        with self._translating("write", path):
            staged, descriptor = _create_temporary(os.path.dirname(target))
        return _LocalWriter(self, path, target, staged, open(descriptor, "wb", buffering=_WRITE_BUFFER_BYTES))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._walk(check_directory(prefix), lambda name: not is_temporary(name))

    def list_temporary(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._walk(check_directory(prefix), is_temporary)

    def list_names(self, directory: str, limit: int | None = None) -> Sequence[str]:
        folder = self._locate(check_directory(directory))
        with suppress(ObjectNotFound), self._translating("list", directory):
            return os.listdir(folder)
        return []

    def delete(self, path: str) -> None:
        target = self._file(path)
        MAPS.forget(target)
        try:
            os.unlink(target)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            if os.path.isdir(target):  # EISDIR or EPERM, by system; a directory is no object
                return
            raise StoreError(f"cannot delete {self.uri_of(path)}: {error.strerror or error}") from error
        self._prune(os.path.dirname(target))

    def copy(self, source: str, target: str) -> None:
        origin, destination = self._file(source), self._file(target)
        with ExitStack() as stack:
            with self._translating("read", source):
                file = stack.enter_context(open(origin, "rb", buffering=0))
            with self._translating("write", target):
                staged = _stage(destination, lambda copy: shutil.copyfileobj(file, copy, _COPY_BYTES), durable=True)
                _publish(staged, destination, durable=True)

    def now(self) -> datetime:
        """Return the file system's time, which on a network mount is another machine's; ours where we cannot write."""
        if not os.path.isdir(self.root):
            return datetime.now(UTC)
        try:
            staged, descriptor = _create_temporary(self.root)
        except OSError:
            return datetime.now(UTC)
        try:
            return datetime.fromtimestamp(os.fstat(descriptor).st_mtime, UTC)
        finally:
            os.close(descriptor)
            _discard(staged)

    def _file(self, path: str) -> str:
        return self._locate(check_path(path))

    def _locate(self, path: str) -> str:
        """Return the absolute path; refuse a symbolic link on the way that leads out of the root."""
        full = self.root
        for part in path.split("/") if path else ():
            full = f"{full.rstrip('/')}/{part}"
            try:
                is_link = stat.S_ISLNK(os.lstat(full).st_mode)
            except OSError:
                continue  # absent, or beneath something that is no directory: the operation itself will say so
            if is_link:
                root = os.path.realpath(self.root)
                if os.path.commonpath([root, os.path.realpath(full)]) != root:
                    raise UnsafePath(f"{self.uri_of(path)}: a symbolic link leads out of the root")
        return full

    def _translating(self, verb: str, path: str) -> _Translation:
        return _Translation(self, verb, path)

    def _walk(self, prefix: str, wanted: Callable[[str], bool]) -> Iterator[ObjectInfo]:
        folders = [prefix]
        while folders:
            folder = folders.pop()
            entries: Sequence[os.DirEntry[str]] = ()
            directory = self._locate(folder)
            with suppress(ObjectNotFound), self._translating("list", folder), os.scandir(directory) as found:
                entries = sorted(found, key=lambda entry: entry.name)
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif wanted(entry.name):
                    with suppress(FileNotFoundError):  # deleted meanwhile
                        status = os.stat(self._locate(path)) if entry.is_symlink() else entry.stat()
                        if stat.S_ISREG(status.st_mode):
                            yield ObjectInfo(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def _prune(self, directory: str) -> None:
        """Remove directories left empty, but keep those directly in the root: every writer counts on them."""
        while directory != self.root and os.path.dirname(directory) != self.root:
            try:
                os.rmdir(directory)
            except OSError:
                return
            directory = os.path.dirname(directory)


class _Translation:
    """Raises the system's errors as the store's. A class, since a generator costs more, several times in each call."""

    __slots__ = ("_path", "_store", "_verb")

    def __init__(self, store: LocalStore, verb: str, path: str) -> None:
        self._store = store
        self._verb = verb
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, OSError) or isinstance(error, StoreError):
            return
        if self._verb != "write" and isinstance(error, _ABSENT):
            raise ObjectNotFound(self._store.uri_of(self._path)) from error
        raise StoreError(f"cannot {self._verb} {self._store.uri_of(self._path)}: {error.strerror or error}") from error


class _LocalWriter(StoreWriter):
    def __init__(self, store: LocalStore, path: str, target: str, staged: str, file: BinaryIO) -> None:
        self._store = store
        self._path = path
        self._target = target
        self._staged = staged
        self._file = file
        self._num_bytes = 0
        self._num_flushed = 0

    def write(self, data: BytesLike) -> None:
        size = memoryview(data).nbytes
        with self._store._translating("write", self._path):
            if size >= _RESERVED_BYTES:
                reserve(self._file.fileno(), self._num_bytes, size)
            self._file.write(data)
        self._num_bytes += size
        if self._num_bytes - self._num_flushed >= _FLUSH_BYTES:
            start_writeback(self._file.fileno(), self._num_flushed, self._num_bytes - self._num_flushed)
            self._num_flushed = self._num_bytes

    def tell(self) -> int:
        return self._num_bytes

    def close(self) -> None:
        if self._file.closed:
            return
        with self._store._translating("write", self._path):
            try:
                self._file.flush()
                if os.path.lexists(self._target):
                    os.fsync(self._file.fileno())  # a power cut leaves the old object or the new
                    os.replace(self._staged, self._target)
                    self._file.close()
                else:
                    self._close_under_new_name()
            except BaseException:
                self.abort()
                raise
            _sync_names(os.path.dirname(self._target))

    def _close_under_new_name(self) -> None:
        """Give the file its name before it is synced: one commit of the journal is enough for both."""
        os.replace(self._staged, self._target)
        try:
            os.fsync(self._file.fileno())
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(self._target)
            raise
        self._file.close()

    def abort(self) -> None:
        if self._file.closed:
            return
        with suppress(OSError):  # the buffered rest may fail to reach the disk; it is not wanted there
            self._file.close()
        _discard(self._staged)


def _create_temporary(directory: str) -> tuple[str, int]:
    """Create an empty temporary file, making directories on demand; return its path and descriptor."""
    staged = f"{directory}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
    attempts = 0
    while True:
        attempts += 1
        try:
            return staged, os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileNotFoundError:  # not made yet, or a concurrent delete pruned it after it was made here
            if attempts == _DIRECTORY_ATTEMPTS:
                raise
        _make_directory(directory)


def _stage(target: str, fill: Callable[[FileIO], object], durable: bool) -> str:
    """Write a temporary file beside `target` and return its path; leave nothing on failure."""
    staged, descriptor = _create_temporary(os.path.dirname(target))
    try:
        with FileIO(descriptor, "wb") as file:
            fill(file)
            if durable:
                os.fsync(descriptor)
    except BaseException:
        _discard(staged)
        raise
    return staged


def _discard(staged: str) -> None:
    """Remove a temporary file; one that cannot be removed now is left to clean-up."""
    with suppress(OSError):
        os.unlink(staged)


def _publish(staged: str, target: str, durable: bool) -> None:
    try:
        os.replace(staged, target)
    except BaseException:
        _discard(staged)
        raise
    if durable:
        _sync_names(os.path.dirname(target))


def _write_all(file: FileIO, data: BytesLike) -> None:
    rest = memoryview(data).cast("B")
    while rest:  # an unbuffered file may take less than it is given
        rest = rest[file.write(rest) :]


def _overwrite(target: str, data: BytesLike) -> bool:
    """Write over a file's own bytes; return False where it is absent, longer, or another name's file as well."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    with FileIO(descriptor, "wb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_size > memoryview(data).nbytes:
            return False
        _write_all(file, data)
    return True


def _make_directory(directory: str) -> None:
    if os.path.isdir(directory):
        return
    _make_directory(os.path.dirname(directory))
    _UNSYNCED[directory] = object()  # before it can be seen: whoever finds it there must find it here
    with suppress(FileExistsError):
        os.mkdir(directory)


def _sync_names(directory: str) -> None:
    """Make the names in a directory durable, and its own where this process made it, and so on upwards."""
    made = {}
    above = directory
    while above in _UNSYNCED:
        made[above] = _UNSYNCED[above]
        above = os.path.dirname(above)
    for parent in reversed(made):
        _sync_directory(os.path.dirname(parent))
    _sync_directory(directory)
    for path, making in made.items():
        if _UNSYNCED.get(path) is making:  # not made anew meanwhile
            del _UNSYNCED[path]


def _sync_directory(directory: str) -> None:
    _sync(directory, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: str, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that has nothing to sync here
            raise
    finally:
        os.close(descriptor)
