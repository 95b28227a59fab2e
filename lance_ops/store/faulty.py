"""Fail at a chosen operation of a store, as a network, a full disk or a dying process does.

A test runs an operation once over a `FaultyStore` without faults, reads from `calls` which steps it takes, and then
runs it again for every step and every `When`.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import field
from datetime import datetime
from enum import Enum
from fnmatch import fnmatchcase
from typing import TypeVar

import pyarrow as pa

from lance_ops.core.errors import StoreError
from lance_ops.core.records import dataclass
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
from lance_ops.store.io_counters import IoCounters
from lance_ops.store.paths import TEMPORARY_PREFIX

__all__ = ["Call", "Fault", "FaultyStore", "SimulatedCrash", "When"]

T = TypeVar("T")


class SimulatedCrash(BaseException):
    """The process died here. It is no `Exception`, and after it the store refuses every operation."""


class When(Enum):
    """Where in an operation a fault strikes."""

    BEFORE = "before"
    """Nothing was done."""
    PARTIAL = "partial"
    """A write left half of its bytes in a temporary object; a read returned half of them, without an error."""
    AFTER = "after"
    """All was done, and the caller gets an error: the lost response."""
    LATE = "late"
    """The caller gets an error, and the request arrives later: when `deliver_late` is called."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure: at the `call`-th matching operation, counted from 1; None means at every one.

    `operation` is the name of a method of `Store`, or `write` or `close` of a writer. `*` in it and in `path` matches
    anything. With `crash` the process dies; otherwise the caller gets a `StoreError`.
    """

    operation: str = "*"
    path: str = "*"
    call: int | None = 1
    when: When = When.BEFORE
    crash: bool = False

    def matches(self, call: Call) -> bool:
        return fnmatchcase(call.operation, self.operation) and fnmatchcase(call.path, self.path)


@dataclass(frozen=True, slots=True)
class Call:
    """One operation that a caller asked of the store."""

    operation: str
    path: str


@dataclass(slots=True)
class _Script:
    """The state that a store and its children share."""

    faults: tuple[Fault, ...]
    calls: list[Call] = field(default_factory=list)
    late: list[Callable[[], object]] = field(default_factory=list)
    is_dead: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def strike(self, call: Call) -> Fault | None:
        """Record a call and return the fault that is due, if any."""
        with self.lock:
            if self.is_dead:
                raise SimulatedCrash(f"{call.operation} {call.path}: the process is dead")
            self.calls.append(call)
            for fault in self.faults:
                if fault.matches(call) and fault.call in (None, sum(map(fault.matches, self.calls))):
                    self.is_dead = fault.crash
                    return fault
            return None


class FaultyStore(Store):
    """Passes operations on to `inner`, except where a fault is due. An unpickled copy counts calls from zero."""

    def __init__(self, inner: Store, *faults: Fault) -> None:
        self._inner = inner
        self._prefix = ""
        self._script = _Script(faults)

    def __repr__(self) -> str:
        return f"FaultyStore({self._inner!r}, {', '.join(map(repr, self._script.faults))})"

    def __reduce__(self) -> tuple[Callable[[Store, tuple[Fault, ...], str], FaultyStore], tuple[object, ...]]:
        return _restore, (self._inner, self._script.faults, self._prefix)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The operations so far, with paths relative to the outermost store."""
        return tuple(self._script.calls)

    def deliver_late(self) -> None:
        """Execute the requests that were reported as failed with `When.LATE`."""
        late, self._script.late = self._script.late, []
        for request in late:
            with suppress(StoreError):  # nobody receives the answer, such as that its object is gone by now
                request()

    @property
    def lists_in_order(self) -> bool:
        return self._inner.lists_in_order

    @property
    def replaces_at_once(self) -> bool:
        return self._inner.replaces_at_once

    @property
    def needs_proof(self) -> bool:
        return self._inner.needs_proof

    @property
    def counters(self) -> IoCounters:
        return self._inner.counters

    def counted_by(self, counters: IoCounters) -> FaultyStore:
        other = FaultyStore(self._inner.counted_by(counters))
        other._prefix, other._script = self._prefix, self._script
        return other

    @property
    def uri(self) -> str:
        return self._inner.uri

    def child(self, prefix: str) -> FaultyStore:
        below = FaultyStore(self._inner.child(prefix))
        below._prefix = f"{self._prefix}{prefix}/"
        below._script = self._script
        return below

    def get(self, path: str) -> pa.Buffer:
        return self._read("get", path, lambda: self._inner.get(path), _half)

    def view(self, path: str) -> View:
        return self._read("get", path, lambda: self._inner.view(path), lambda found: View(_half(found.buffer)))

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Buffers:
        return self._read("get_ranges", path, lambda: self._inner.get_ranges(path, ranges), _halves)

    def size(self, path: str) -> int:
        return self._read("size", path, lambda: self._inner.size(path))

    def exists(self, path: str) -> bool:
        return self._read("exists", path, lambda: self._inner.exists(path))

    def put(self, path: str, data: BytesLike, *, durable: bool = True) -> None:
        self._write("put", path, lambda: self._inner.put(path, data, durable=durable), data)

    def put_hint(self, path: str, data: BytesLike) -> None:
        self._write("put_hint", path, lambda: self._inner.put_hint(path, data), data)

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        needed = tuple(after)
        return self._write("put_if_absent", path, lambda: self._inner.put_if_absent(path, data, after=needed), data)

    def make_durable(self, *paths: str) -> None:
        self._write("make_durable", " ".join(paths), lambda: self._inner.make_durable(*paths))

    def open_writer(self, path: str, *, durable: bool = True) -> StoreWriter:
        return self._write(
            "open_writer", path, lambda: _FaultyWriter(self, path, self._inner.open_writer(path, durable=durable))
        )

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._read("list", prefix, lambda: self._inner.list(prefix))

    def directory_stamp(self, directory: str) -> str | None:
        return self._read("stamp", directory, lambda: self._inner.directory_stamp(directory))

    def seal_directory(self, directory: str) -> str | None:
        return self._write("seal", directory, lambda: self._inner.seal_directory(directory))

    def watch_directory(self, directory: str) -> AbstractContextManager[Callable[[], frozenset[str] | None]]:
        return self._read("watch", directory, lambda: self._inner.watch_directory(directory))

    def list_temporary(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._read("list_temporary", prefix, lambda: self._inner.list_temporary(prefix))

    def list_names(self, directory: str, limit: int | None = None) -> Sequence[str]:
        return self._read("list_names", directory, lambda: self._inner.list_names(directory, limit), _half)

    def list_folders(self, directory: str) -> Sequence[str]:
        return self._read("list_folders", directory, lambda: self._inner.list_folders(directory), _half)

    def delete(self, path: str) -> None:
        self._write("delete", path, lambda: self._inner.delete(path))

    def copy(self, source: str, target: str) -> None:
        self._write("copy", target, lambda: self._inner.copy(source, target))

    def now(self) -> datetime:
        return self._read("now", "", self._inner.now)

    def _read(self, operation: str, path: str, do: Callable[[], T], cut: Callable[[T], T] | None = None) -> T:
        fault = self._script.strike(self._call(operation, path))
        if fault is None:
            return do()
        if fault.when is When.PARTIAL and cut is not None and not fault.crash:
            return cut(do())
        raise self._error(fault, operation, path)

    def _write(self, operation: str, path: str, do: Callable[[], T], data: BytesLike | None = None) -> T:
        fault = self._script.strike(self._call(operation, path))
        if fault is None:
            return do()
        if fault.when is When.AFTER:
            do()
        elif fault.when is When.LATE:
            self._script.late.append(do)
        elif fault.when is When.PARTIAL and data is not None:
            directory = path.rpartition("/")[0]
            name = f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
            self._inner.put(f"{directory}/{name}".lstrip("/"), _half(memoryview(data)))
        raise self._error(fault, operation, path)

    def _call(self, operation: str, path: str) -> Call:
        return Call(operation, f"{self._prefix}{path}")

    def _error(self, fault: Fault, operation: str, path: str) -> BaseException:
        text = f"{operation} {self.uri_of(path)}: simulated failure, {fault.when.value}"
        return SimulatedCrash(text) if fault.crash else StoreError(text)


class _FaultyWriter(StoreWriter):
    def __init__(self, store: FaultyStore, path: str, inner: StoreWriter) -> None:
        self._store = store
        self._path = path
        self._inner = inner

    def write(self, data: BytesLike) -> None:
        fault = self._store._script.strike(self._store._call("write", self._path))
        if fault is None or fault.when is When.AFTER:
            self._inner.write(data)
        elif fault.when is When.PARTIAL:
            self._inner.write(_half(memoryview(data)))
        if fault is not None:
            raise self._store._error(fault, "write", self._path)

    def tell(self) -> int:
        return self._inner.tell()

    def close(self) -> None:
        self._store._write("close", self._path, self._inner.close)

    def abort(self) -> None:
        if not self._store._script.is_dead:  # a dead process cleans up nothing
            self._inner.abort()


S = TypeVar("S", memoryview, Sequence[str])


def _half(whole: S) -> S:
    return whole[: len(whole) // 2]


def _halves(buffers: Buffers) -> Buffers:
    return list(map(_half, buffers))


def _restore(inner: Store, faults: tuple[Fault, ...], prefix: str) -> FaultyStore:
    store = FaultyStore(inner, *faults)
    store._prefix = prefix
    return store
