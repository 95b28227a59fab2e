"""The interface of a store: objects of bytes under relative paths, beneath one root.

A store has no directories, only objects whose paths contain `/`. It is picklable (another process opens the same
root) and fork-safe (a child never touches its parent's connections). Objects are immutable in use: every file of a
dataset gets a fresh name, and `put` replaces an object whole.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from enum import Enum
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import LanceOpsError, StoreError
from lance_ops.core.ndarrays import Int64Array
from lance_ops.store.io_counters import IoCounters

__all__ = [
    "READ_WHOLE_BYTES",
    "Buffers",
    "ByteRange",
    "BytesLike",
    "ObjectInfo",
    "PutOutcome",
    "Store",
    "StoreWriter",
    "View",
]

_LOG = logging.getLogger("lance_ops")

T = TypeVar("T")

BytesLike: TypeAlias = bytes | bytearray | memoryview | pa.Buffer
ByteRange = tuple[int, int]
"""Half-open `(start, end)` in bytes."""
Buffers = list[pa.Buffer]
"""Named here, because inside a class with a method `list` the builtin has no name."""

READ_WHOLE_BYTES = 128 << 10
"""A local store copies a file up to this size into memory when it returns its view, and maps a longer one."""


class PutOutcome(Enum):
    """The result of `put_if_absent`. `ABANDONED`: `prepare` returned False, and nothing was written."""

    CREATED = "created"
    EXISTS = "exists"
    ABANDONED = "abandoned"


class ObjectInfo(NamedTuple):
    """One listed object; `modified` is by the store's clock, in UTC. `tag` is its entity tag, None if not stated."""

    path: str
    size_bytes: int
    modified: datetime
    tag: str | None = None


class View:
    """The bytes of an object of which only parts may be read."""

    __slots__ = ("buffer", "identity")

    def __init__(self, buffer: pa.Buffer, identity: Hashable | None = None) -> None:
        self.buffer = buffer
        self.identity = identity
        """Views with equal identities have equal bytes. None: the store cannot tell."""

    def whole(self) -> pa.Buffer:
        """Return the bytes; the caller will read all of them."""
        return self.buffer

    def will_need(self, starts: Int64Array, stops: Int64Array) -> None:
        """Begin to read half-open byte ranges. This is advice: it may do nothing, and never fails."""
        return


class StoreWriter(ABC):
    """An object being written: invisible until `close`, never visible after `abort`.

    As a context manager it closes at the end and aborts on an exception.
    """

    @abstractmethod
    def write(self, data: BytesLike) -> None:
        """Append bytes."""

    @abstractmethod
    def tell(self) -> int:
        """Return the number of bytes written so far."""

    @abstractmethod
    def close(self) -> None:
        """Make the object visible, and durable if the writer was opened so. A second call does nothing."""

    def begin_close(self) -> Callable[[], object]:
        """Do what `close` does, perhaps beside the caller; the function that is returned waits and raises its error.

        Until it has been called, the object may come into being at any time.
        """
        self.close()
        return lambda: None

    @abstractmethod
    def abort(self) -> None:
        """Leave nothing behind. Does nothing after `close`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
            return
        try:
            self.close()
        except BaseException:
            self.abort()
            raise


class Store(ABC):
    """Bytes beneath one root.

    Every method raises `UnsafePath` for a path that leaves the root, `ObjectNotFound` for a missing object that it
    needs, and `StoreError` when the store fails.
    """

    reads_in_place: bool = False
    """Whether `get` copies nothing, so that reading ranges of an object saves nothing."""

    gap_bytes: int = 0
    """`get_ranges` always reads what lies between two ranges too if it is no longer than this: a request costs more."""

    @property
    def lists_in_order(self) -> bool:
        """Whether listing is lexicographic by path, so that a limit finds the first names."""
        return False

    @property
    def replaces_at_once(self) -> bool:
        """Whether an object exists at every moment while it is replaced."""
        return True

    @property
    def needs_proof(self) -> bool:
        """Whether `put_if_absent` relies on a promise of a server; see `lance_ops.store.probe`."""
        return False

    @property
    def proof_scope(self) -> object:
        """What the proof of a conditional create holds for: stores with an equal value ask the same server.

        It holds no secret, because a process keeps it in memory until it ends.
        """
        return self

    def begin_call(self, call: Callable[[], T]) -> Callable[[], T]:
        """Begin a call that waits for this store, and return a function that waits for its result or raises its error.

        The call must not wait for another one that was begun, and its result is asked for at most once. By default it
        runs then: a local store answers sooner than a thread starts.
        """
        return call

    @property
    @abstractmethod
    def counters(self) -> IoCounters:
        """What this store and its children have read and written."""

    @abstractmethod
    def counted_by(self, counters: IoCounters) -> Store:
        """Return a store of the same objects that counts in other counters."""

    @property
    @abstractmethod
    def uri(self) -> str:
        """The URI of the root, without a trailing slash and without secrets; `open_store` takes it."""

    @abstractmethod
    def child(self, prefix: str) -> Store:
        """Return the store whose root is the directory `prefix` of this one."""

    @abstractmethod
    def get(self, path: str) -> pa.Buffer:
        """Return a whole object."""

    def view(self, path: str) -> View:
        """Return a whole object for reading parts of it. With `reads_in_place`, nothing is read yet."""
        return View(self.get(path))

    def read_parts(
        self, paths: Sequence[str], parts: Sequence[Sequence[tuple[int, int, int]]], out: memoryview
    ) -> list[int] | None:
        """Read parts of objects into `out`: each part of object `i` is a position in it, a size and a place in `out`.

        Returns how many bytes each part has, for all objects in turn: fewer than its size where the object ends before.
        Returns None, with anything in `out`, if an object cannot be read so. The caller then reads each object by
        itself, which raises the error.
        """
        found = []
        for path, of_object in zip(paths, parts, strict=True):
            view = self.view(path)
            starts = np.array([position for position, _, _ in of_object], np.int64)
            stops = np.array([position + size for position, size, _ in of_object], np.int64)
            view.will_need(starts, stops.clip(max=view.buffer.size))
            everything = memoryview(view.buffer).cast("B")
            for position, size, place in of_object:
                data = everything[position : position + size]
                out[place : place + len(data)] = data
                found.append(len(data))
        return found

    @abstractmethod
    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Buffers:
        """Return the bytes of each half-open range, in the given order.

        Raises `CorruptFile` when the object ends before a range does: ranges come from the object's own metadata.
        """

    def get_range(self, path: str, start: int, end: int) -> pa.Buffer:
        """Return bytes `start` to `end` (exclusive); see `get_ranges`."""
        return self.get_ranges(path, [(start, end)])[0]

    @abstractmethod
    def size(self, path: str) -> int:
        """Return an object's length in bytes."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether there is an object at `path`."""

    @abstractmethod
    def put(self, path: str, data: BytesLike, *, durable: bool = True) -> None:
        """Write or replace an object whole; readers see the old bytes or the new ones.

        With `durable=False` a power cut may lose it, until `make_durable` or a `put_if_absent` with it in `after`.
        """

    def put_hint(self, path: str, data: BytesLike) -> None:
        """Write or replace a small object that may be lost.

        A reader may find it half written; the caller must make sure that this does no harm.
        """
        self.put(path, data, durable=False)

    @abstractmethod
    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        """Create an object durably if it does not exist; of any number of racing callers exactly one creates it.

        The objects in `after` are made durable first, all at the same time, which costs little more than one of them.

        Raises `UnsafeStore` where the store has no such primitive, `WriteRefused` when nothing was written and nothing
        will appear later, and any other `StoreError` when that is not known.
        """

    def put_if_absent_with_callbacks(
        self,
        path: str,
        data: BytesLike,
        *,
        after: Iterable[str] = (),
        prepare: Callable[[], bool],
        follow_up: Callable[[], object],
    ) -> PutOutcome:
        """Do what `put_if_absent` does, and call two functions of the caller on the way.

        `prepare` is called before the object can appear; if it returns False, nothing is written. `follow_up` is called
        once the object exists, perhaps before it is durable, and must not raise. A store that waits for a disk calls
        them while it waits.
        """
        if not prepare():
            return PutOutcome.ABANDONED
        outcome = self.put_if_absent(path, data, after=after)
        if outcome is PutOutcome.CREATED:
            follow_up()
        return outcome

    @abstractmethod
    def make_durable(self, *paths: str) -> None:
        """Make existing objects durable, so that they survive a power cut."""

    @abstractmethod
    def open_writer(self, path: str, *, durable: bool = True) -> StoreWriter:
        """Start writing or replacing an object too large to hold in memory; `durable` is as for `put`."""

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield every object beneath the directory `prefix` (all of them for `""`), temporary files left out."""

    @abstractmethod
    def list_names(self, directory: str, limit: int | None = None) -> Sequence[str]:
        """Return the names directly in a directory. This is far cheaper than `list`, because only names are read.

        On a file system, names of directories and temporary files may be among them. With `lists_in_order`, names
        ascend and only the first `limit` are returned; otherwise `limit` is ignored.
        """

    def list_folders(self, directory: str) -> Sequence[str]:
        """Return the names of the folders directly in a directory, in any order; on a file system some may be empty.

        An object store answers from the delimiter in the paths, and lists nothing beneath these folders.
        """
        start = f"{directory.removesuffix('/')}/".lstrip("/")
        parts = (found.path.removeprefix(start).partition("/") for found in self.list(directory))
        return list(dict.fromkeys(name for name, slash, _ in parts if slash))

    def list_tags(self, directory: str, limit: int | None = None) -> Mapping[str, str | None]:
        """Return the names that `list_names` returns, each with a tag of its object, None where the store has none.

        An object that is replaced by other bytes gets another tag.
        """
        return dict.fromkeys(self.list_names(directory, limit))

    def directory_stamp(self, directory: str) -> str | None:
        """Return a value that changes when names in the directory come or go; None where that would not be cheap.

        Names that come within one tick of the file system's clock may share a stamp, unless the directory was sealed
        before.
        """
        return None

    def seal_directory(self, directory: str) -> str | None:
        """Give a directory a stamp that it never had, and return the stamp; None where that is not possible.

        Every name that comes or goes changes the stamp, and nothing else does. Neither this directory in another state
        nor another directory ever has the same stamp.
        """
        return None

    def watch_directory(self, directory: str) -> AbstractContextManager[Callable[[], frozenset[str] | None]]:
        """Watch a directory while the context lasts. Its function returns the names that came or went since it began.

        The function returns None where the store cannot be sure of them. Called after `seal_directory`, it returns at
        least every name that came or went before the seal. Temporary names are among them.
        """
        return nullcontext(lambda: None)

    @abstractmethod
    def list_temporary(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield the temporary objects of crashed and of live writers beneath `prefix`; `delete` removes one."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove an object; do nothing if it is missing."""

    @property
    def deleted_at_once(self) -> int:
        """How many objects `delete_several` removes in one request."""
        return 1

    def delete_several(self, paths: Sequence[str]) -> set[str]:
        """Remove objects, at most `deleted_at_once`, and return the paths of those that the store failed to remove."""
        failed = set()
        for path in paths:
            try:
                self.delete(path)
            except StoreError:
                failed.add(path)
        return failed

    def clear(self) -> None:
        """Remove every object, every temporary object, and the directories where the store has any.

        Raises `UnsafePath`, with nothing removed, where a symbolic link leads out of the root.
        """
        while paths := [info.path for info in (*self.list(), *self.list_temporary())]:  # others may write
            for path in paths:
                self.delete(path)

    def clear_or_leave(self) -> None:
        """Clear a folder of scratch files, which no version names.

        If that fails, log a warning and leave the rest to clean-up. It raises no `LanceOpsError`: the caller's commit
        has its outcome already, or another error is on its way.
        """
        try:
            self.clear()
        except LanceOpsError as error:
            _LOG.warning("%s: the scratch files stay until clean-up removes them by age: %s", self.uri, error)

    @abstractmethod
    def copy(self, source: str, target: str) -> None:
        """Copy an object within the store, durably, replacing the target."""

    @abstractmethod
    def now(self) -> datetime:
        """Return the time by the clock that sets `ObjectInfo.modified`, in UTC."""

    def uri_of(self, path: str) -> str:
        """Return an object's full name, for messages."""
        return f"{self.uri}/{path}"
