"""A directory of a local (or network) POSIX file system.

Whatever becomes visible was written to a temporary file in the same directory first, then named in one step. What is to
be durable is synced before the call returns, and with it its directory and the parent of every directory made on the
way, all at the same time. A file whose name is new is named before it is synced: nobody knows the name before the call
returns. One that takes another's place is synced first, and so is what `put_if_absent` creates, since its name is what
others wait for.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import RawIOBase
from typing import BinaryIO, NoReturn, TypeVar

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import ObjectNotFound, StoreError, UnsafePath, WriteRefused
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
from lance_ops.store.local.exclusive_name import take_name
from lance_ops.store.local.map_cache import MAPS
from lance_ops.store.local.reserve import reserve
from lance_ops.store.local.seals import seal, stamp
from lance_ops.store.local.syncing import Syncing, make_directory, sync, with_names
from lance_ops.store.local.writeback import start_writeback
from lance_ops.store.paths import TEMPORARY_PREFIX, check_directory, check_path, is_temporary
from lance_ops.store.ranges import check_ranges, slice_ranges

__all__ = ["LocalStore"]

_WRITE_BUFFER_BYTES = 64 << 10
_COPY_BYTES = 4 << 20
_MODE = 0o666  # but for what the process's mask takes of it
# A file's bytes are on their way to the disk in pieces of this size while the next are being made.
_FLUSH_BYTES = 4 << 20
# What is at least this long gets its room on the disk in one piece.
_RESERVED_BYTES = 256 << 10
_DIRECTORY_ATTEMPTS = 10
_LONGEST_TICK = timedelta(milliseconds=20)
T = TypeVar("T")
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


@dataclass(frozen=True, slots=True)
class LocalStore(Store):
    """Files beneath the directory `root`, which need not exist yet. Reads are memory-mapped and copy nothing,
    but for those of short files.

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
        try:
            return LocalStore(self._file(prefix))
        except OSError as error:
            self._fail("read", prefix, error)

    def get(self, path: str) -> pa.Buffer:
        return self.view(path).whole()

    def view(self, path: str) -> View:
        try:
            return MAPS.get(*self._examine(check_path(path)))
        except OSError as error:
            self._fail("read", path, error)

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
            _publish(_stage(target, lambda descriptor: _write_all(descriptor, data)), target, durable)
        except OSError as error:
            self._fail("write", path, error)

    def put_hint(self, path: str, data: BytesLike) -> None:
        """Write in place where that cuts nothing short: a name for what is staged costs as much as the hint."""
        try:
            if not self._overwrite(check_path(path), data):
                target = self._file(path)
                _publish(_stage(target, lambda descriptor: _write_all(descriptor, data)), target, durable=False)
        except OSError as error:
            self._fail("write", path, error)

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        return self.put_if_absent_between(path, data, after=after, prepare=lambda: True, follow_up=lambda: None)

    def put_if_absent_between(
        self,
        path: str,
        data: BytesLike,
        *,
        after: Iterable[str] = (),
        prepare: Callable[[], bool],
        follow_up: Callable[[], object],
    ) -> PutOutcome:
        try:
            target, taken = self._examine(check_path(path))
            needed = [self._file(other) for other in after]
            if taken is not None:
                return PutOutcome.EXISTS
            staged = _stage(target, lambda descriptor: _write_all(descriptor, data))
            try:
                with Syncing([staged, *with_names(needed)]):
                    is_wanted = prepare()
            except BaseException:
                _discard(staged)
                raise
        except OSError as error:  # before the name is taken, nothing can have appeared
            raise WriteRefused(f"cannot write {self.uri_of(path)}: {error.strerror or error}") from error
        if not is_wanted:
            _discard(staged)
            return PutOutcome.WITHHELD
        try:
            try:
                created = take_name(staged, target)
            finally:
                _discard(staged)
            if created:
                with Syncing([os.path.dirname(target)]):
                    follow_up()
        except OSError as error:
            self._fail("write", path, error)
        return PutOutcome.CREATED if created else PutOutcome.EXISTS

    def make_durable(self, *paths: str) -> None:
        try:
            sync(with_names(self._file(path) for path in paths))
        except OSError as error:
            self._fail("sync", ", ".join(paths), error)

    def open_writer(self, path: str, *, durable: bool = True) -> StoreWriter:
        try:
            target = self._file(path)
            staged, descriptor = _create_temporary(os.path.dirname(target))
        except OSError as error:
            self._fail("write", path, error)
        return _LocalWriter(self, path, target, staged, open(descriptor, "wb", buffering=_WRITE_BUFFER_BYTES), durable)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._walk(check_directory(prefix), lambda name: not is_temporary(name))

    def list_temporary(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._walk(check_directory(prefix), is_temporary)

    def list_names(self, directory: str, limit: int | None = None) -> Sequence[str]:
        return self._ask(check_directory(directory), os.listdir) or ()

    def stamp(self, directory: str) -> str | None:
        return self._ask(check_directory(directory), stamp)

    def seal(self, directory: str) -> str | None:
        return self._ask(check_directory(directory), seal)

    def delete(self, path: str) -> None:
        try:
            target = self._file(path)
            MAPS.forget(target)
            os.unlink(target)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            if os.path.isdir(f"{self.root}/{path}"):  # EISDIR or EPERM, by system; a directory is no object
                return
            self._fail("delete", path, error)
        self._prune(os.path.dirname(target))

    def clear(self) -> None:
        """Remove everything in the directory, and the directory unless it was named by a symbolic link."""
        Store.clear(self)  # `super` knows no class with slots
        for folder, names, others in os.walk(self.root, topdown=False):
            for path in (f"{folder}/{name}" for name in (*names, *others)):
                with suppress(OSError):  # somebody writes there again
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
                _publish(_stage(destination, lambda descriptor: _copy_all(file, descriptor)), destination, durable=True)
            except OSError as error:
                self._fail("write", target, error)

    def now(self) -> datetime:
        """Return the file system's time, which on a network mount is another machine's; ours where we cannot write.

        Files are stamped with the last tick of a clock. Where that is ours, ours tells the same time, and finer.
        """
        if not os.path.isdir(self.root):
            return datetime.now(UTC)
        try:
            staged, descriptor = _create_temporary(self.root)
        except OSError:
            return datetime.now(UTC)
        try:
            stamp, ours = datetime.fromtimestamp(os.fstat(descriptor).st_mtime, UTC), datetime.now(UTC)
        finally:
            os.close(descriptor)
            _discard(staged)
        return ours if timedelta(0) <= ours - stamp < _LONGEST_TICK else stamp

    def _file(self, path: str) -> str:
        return self._examine(check_path(path))[0]

    def _locate(self, path: str) -> str:
        """Return the absolute path, as `_examine` does."""
        return self._examine(path)[0]

    def _examine(self, path: str) -> tuple[str, os.stat_result | None]:
        """Return the absolute path and what has that name, a symbolic link unfollowed, or None if it is absent.

        Refuses a symbolic link on the way that leads out of the root, and raises `OSError` where it cannot look.
        """
        full, status = self.root, None
        for part in path.split("/") if path else ():
            full = f"{full}/{part}" if full != "/" else f"/{part}"
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
        """Return what has a name, symbolic links followed; None if it is absent."""
        try:
            file, status = self._examine(check_path(path))
            return os.stat(file) if status is not None and stat.S_ISLNK(status.st_mode) else status
        except _ABSENT:  # what a link leads to
            return None
        except OSError as error:
            self._fail("read", path, error)

    def _ask(self, directory: str, question: Callable[[int], T]) -> T | None:
        """Return the answer to a question about an open directory; None if it is absent."""
        try:
            descriptor = self._open(directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                return question(descriptor)
            finally:
                os.close(descriptor)
        except _ABSENT:
            return None
        except OSError as error:
            self._fail("list", directory, error)

    def _open(self, path: str, flags: int) -> int:
        """Open what has a name; what can be opened as no symbolic link need not be looked at before."""
        above, _, name = path.rpartition("/")
        try:
            return os.open(f"{self._locate(above)}/{name}", flags | os.O_NOFOLLOW, _MODE)
        except OSError:
            return os.open(self._locate(path), flags, _MODE)

    def _overwrite(self, path: str, data: BytesLike) -> bool:
        """Write a file, or over its own bytes; return False where it is longer, also another's, or has no folder."""
        try:
            descriptor = self._open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_size > memoryview(data).nbytes:
                return False
            _write_all(descriptor, data)
        finally:
            os.close(descriptor)
        return True

    def _fail(self, verb: str, path: str, error: OSError) -> NoReturn:
        """Raise the system's error as the store's."""
        if isinstance(error, StoreError):
            raise error
        if verb != "write" and isinstance(error, _ABSENT):
            raise ObjectNotFound(self.uri_of(path)) from error
        raise StoreError(f"cannot {verb} {self.uri_of(path)}: {error.strerror or error}") from error

    def _walk(self, prefix: str, wanted: Callable[[str], bool]) -> Iterator[ObjectInfo]:
        folders = [prefix]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(self._locate(folder)) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except _ABSENT:
                continue
            except OSError as error:
                self._fail("list", folder, error)
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


class _LocalWriter(StoreWriter):
    def __init__(self, store: LocalStore, path: str, target: str, staged: str, file: BinaryIO, durable: bool) -> None:
        self._store = store
        self._path = path
        self._target = target
        self._staged = staged
        self._file = file
        self._durable = durable
        self._num_bytes = 0
        self._num_flushed = 0

    def write(self, data: BytesLike) -> None:
        size = memoryview(data).nbytes
        try:
            if size >= _RESERVED_BYTES:
                reserve(self._file.fileno(), self._num_bytes, size)
            self._file.write(data)
        except OSError as error:
            self._store._fail("write", self._path, error)
        self._num_bytes += size
        if self._num_bytes - self._num_flushed >= _FLUSH_BYTES:
            start_writeback(self._file.fileno(), self._num_flushed, self._num_bytes - self._num_flushed)
            self._num_flushed = self._num_bytes

    def tell(self) -> int:
        return self._num_bytes

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            self._file.flush()
            # Of a file whose bytes are on their way already, there is nothing to gain by waiting.
            _publish(self._staged, self._target, self._durable or self._num_flushed > 0)
            self._file.close()
        except BaseException as error:
            self.abort()
            if isinstance(error, OSError):
                self._store._fail("write", self._path, error)
            raise

    def abort(self) -> None:
        if self._file.closed:
            return
        with suppress(OSError):  # the buffered rest may fail to reach the disk; it is not wanted there
            self._file.close()
        _discard(self._staged)


def _create_temporary(directory: str) -> tuple[str, int]:
    """Create an empty temporary file, making directories on demand; return its path and descriptor."""
    staged = f"{directory}/{TEMPORARY_PREFIX}{os.urandom(16).hex()}"
    attempts = 0
    while True:
        attempts += 1
        try:
            return staged, os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        except FileNotFoundError:  # not made yet, or a concurrent delete pruned it after it was made here
            if attempts == _DIRECTORY_ATTEMPTS:
                raise
        make_directory(directory)


def _stage(target: str, fill: Callable[[int], object]) -> str:
    """Fill a temporary file beside `target` and return its path; leave nothing on failure."""
    staged, descriptor = _create_temporary(os.path.dirname(target))
    try:
        try:
            fill(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        _discard(staged)
        raise
    return staged


def _discard(staged: str) -> None:
    """Remove a temporary file; one that cannot be removed now is left to clean-up."""
    with suppress(OSError):
        os.unlink(staged)


def _publish(staged: str, target: str, durable: bool) -> None:
    """Give a staged file its name; leave nothing of it on failure."""
    try:
        replaces = durable and os.path.lexists(target)
        if replaces:
            sync([staged])  # a power cut leaves the old object or the new
        os.replace(staged, target)
    except BaseException:
        _discard(staged)
        raise
    if replaces:
        sync([os.path.dirname(target)])
    elif durable:
        try:
            sync(with_names([target]))
        except BaseException:
            _discard(target)
            raise


def _write_all(descriptor: int, data: BytesLike) -> None:
    rest = memoryview(data).cast("B")
    while rest:  # the system may take less than it is given
        rest = rest[os.write(descriptor, rest) :]


def _copy_all(file: RawIOBase, descriptor: int) -> None:
    with open(descriptor, "wb", buffering=0, closefd=False) as copy:
        shutil.copyfileobj(file, copy, _COPY_BYTES)
