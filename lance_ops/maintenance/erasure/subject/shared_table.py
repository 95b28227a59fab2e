"""A table that every task of an erasure reads, such as the subject's keys. It is stored once, and tasks say where.

    _lance_ops/erasures/{32 hex digits}.sealed

Threads use the table of the process that began the erasure. A runner with workers sends each task through a pickle.
There, a table of more than 64 KiB is in a file while the erasure runs, and each worker process reads it once and holds
it, with what was made of it, for the next tasks. A worker is not told when the erasure ends, so it forgets a table one
minute after the last task began that used it. Smaller tables travel with the tasks.

The file is encrypted: an erasure must not leave another copy of what it erases if its process dies. Each byte is
combined by XOR with one of the stream that SHAKE-256 makes of a random secret of 32 bytes. The secret is used for one
file, and is only in the tasks. So a file that a crash leaves tells nothing but a length. The next erasure removes such
files when they are a week old.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from lance_ops.committers import open_root
from lance_ops.core.errors import CorruptFile, LanceOpsError
from lance_ops.core.records import dataclass
from lance_ops.refs import ERASURES_DIR, writable_reference_store
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store

__all__ = ["SharedTable", "shared"]

T = TypeVar("T")

_FEW_BYTES = 64 << 10
_SUFFIX = ".sealed"
_SECRET_BYTES = 32
_LEFT_BY_A_CRASH = timedelta(days=7)
_MOST_HELD = 2
"""The keys and the values to look for are all that an erasure shares."""
_SECONDS_HELD = 60.0


@dataclass(frozen=True)
class _Place:
    """Where a table is stored, and what is needed to read it."""

    uri: str
    path: str
    secret: bytes = field(repr=False)
    sha256: bytes = field(repr=False)
    storage_options: tuple[tuple[str, str], ...] = field(repr=False)


class _Held:
    """A table in this process, and what was made of it."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._made: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    def derived(self, make: Callable[..., T], *arguments: Hashable) -> T:
        with self._lock:
            if (make, arguments) not in self._made:
                self._made[make, arguments] = make(self.table, *arguments)
            found: T = self._made[make, arguments]
        return found


class _HeldTables:
    """The tables that this process read from files, until a minute after their last use; the last used is last."""

    def __init__(self) -> None:
        self._tables: OrderedDict[_Place, tuple[_Held, float]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, place: _Place) -> _Held:
        """Return a table, which is read if it is not held; raise as `SharedTable.table` does."""
        with self._lock:
            known = self._tables.pop(place, None)
            held = _read(place) if known is None else known[0]
            self._tables[place] = held, time.monotonic()
            while len(self._tables) > _MOST_HELD:
                self._tables.popitem(last=False)
            if known is None:
                self._look_later(place, _SECONDS_HELD)
        return held

    def _look_later(self, place: _Place, seconds: float) -> None:
        timer = threading.Timer(seconds, self._forget_if_unused, (place,))
        timer.daemon = True
        timer.start()

    def _forget_if_unused(self, place: _Place) -> None:
        with self._lock:
            if place not in self._tables:
                return
            left = self._tables[place][1] + _SECONDS_HELD - time.monotonic()
            if left > 0:
                self._look_later(place, left)
            else:
                del self._tables[place]


_HELD_TABLES = _HeldTables()


class SharedTable:
    """A table in memory; if it is stored, its pickle is its place. See this module."""

    def __init__(self, table: pa.Table | None, place: _Place | None = None) -> None:
        self._held = None if table is None else _Held(table)
        self._place = place

    @property
    def path(self) -> str | None:
        """The path of the file beneath the root of the main branch; None if the table is not stored."""
        return None if self._place is None else self._place.path

    @property
    def table(self) -> pa.Table:
        """The table; raises `CorruptFile` naming a file with other bytes, and `ObjectNotFound` if it is gone."""
        return self._loaded().table

    def derived(self, make: Callable[..., T], *arguments: Hashable) -> T:
        """Return `make(table, *arguments)`, which is called once in this process; raises as `table` does."""
        return self._loaded().derived(make, *arguments)

    def _loaded(self) -> _Held:
        if self._held is None:
            assert self._place is not None
            self._held = _HELD_TABLES.get(self._place)
        return self._held

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return SharedTable, (self.table,) if self._place is None else (None, self._place)


@contextmanager
def shared(main: Snapshot, table: pa.Table, runner: Runner) -> Iterator[SharedTable]:
    """Give a table to the tasks of a runner. If it is stored for them, its file is removed in the end."""
    if isinstance(runner, InThreads) or table.nbytes <= _FEW_BYTES:
        yield SharedTable(table)
        return
    store = writable_reference_store(main)
    _remove_old(store)
    path = f"{ERASURES_DIR}/{uuid.uuid4().hex}{_SUFFIX}"
    try:
        yield SharedTable(table, _write(store, path, dict(main.storage_options), table))
    finally:
        with suppress(LanceOpsError):
            store.delete(path)


def _write(store: Store, path: str, storage_options: dict[str, str], table: pa.Table) -> _Place:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data, secret = sink.getvalue(), secrets.token_bytes(_SECRET_BYTES)
    store.put(path, _combined(data, secret))
    return _Place(store.uri, path, secret, hashlib.sha256(data).digest(), tuple(sorted(storage_options.items())))


def _read(place: _Place) -> _Held:
    store = open_root(place.uri, dict(place.storage_options)).store
    data = _combined(store.get(place.path), place.secret)
    if hashlib.sha256(data).digest() != place.sha256:
        raise CorruptFile(store.uri_of(place.path), "content", "it does not have the hash of what was stored")
    return _Held(pa.ipc.open_stream(pa.py_buffer(data)).read_all())


def _combined(data: pa.Buffer, secret: bytes) -> bytes:
    """Encrypt, or decrypt what was encrypted with the same secret."""
    stream = hashlib.shake_256(secret).digest(data.size)
    combined: bytes = np.bitwise_xor(np.frombuffer(data, np.uint8), np.frombuffer(stream, np.uint8)).tobytes()
    return combined


def _remove_old(store: Store) -> None:
    found = [info for info in store.list(ERASURES_DIR) if info.path.endswith(_SUFFIX)]
    now = store.now() if found else None
    for info in found:
        if now is not None and now - info.modified > _LEFT_BY_A_CRASH:
            with suppress(LanceOpsError):
                store.delete(info.path)
