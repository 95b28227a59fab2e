"""What a process shares and no child of it may touch: clients of servers, and the threads that wait for I/O.

A client holds connections and perhaps an event loop's thread, neither of which survives a fork: a child makes its own.
fsspec's cache of file systems is not used, since it keeps one per thread and lists directories from memory.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from lance_ops.core.keyed_locks import KeyedLocks

__all__ = ["PER_PROCESS", "PerProcess"]

_IO_THREADS = 16
# One for S3 is 13 MB. Credentials that are renewed make new ones.
_MOST_CLIENTS = 32


class PerProcess:
    """What is shared by all stores of a process and by nothing else."""

    def __init__(self) -> None:
        self._clients: OrderedDict[object, _Client] = OrderedDict()
        self._of_parents: list[OrderedDict[object, _Client]] = []
        self.reset()

    def reset(self) -> None:
        """Use nothing any more that is here, as a forked child must.

        It belongs to the parent: it is not closed, not even by being forgotten, since some clients say farewell then,
        over a connection that the parent still uses.
        """
        self._of_parents.append(self._clients)
        _leave_open(client.itself for client in self._clients.values())
        self._lock = threading.Lock()
        self._making = KeyedLocks(threading.Lock)
        self._clients = OrderedDict()
        self._pool: ThreadPoolExecutor | None = None

    def client(self, key: object, make: Callable[[], Any], let_go: Callable[[Any], object] | None = None) -> Any:
        """Return the client kept under `key`, made at first use. Those that were used last are kept.

        A server that lets whoever makes a client wait holds up nobody who wants another. `let_go` is told of one that
        is not kept any more. Others may be at work with it: it is not to be closed.
        """
        with self._lock:
            found = self._kept(key)
        if found is not None:
            return found.itself
        turn = self._making.of(key)
        with turn.lock:
            with self._lock:
                found = self._kept(key)
            if found is not None:
                return found.itself
            made = _Client(make(), let_go)
            with self._lock:
                self._clients[key] = made
                oldest = self._clients.popitem(last=False)[1] if len(self._clients) > _MOST_CLIENTS else None
        if oldest is not None and oldest.let_go is not None:
            oldest.let_go(oldest.itself)
        return made.itself

    def _kept(self, key: object) -> _Client | None:
        if key in self._clients:
            self._clients.move_to_end(key)
        return self._clients.get(key)

    def pool(self) -> ThreadPoolExecutor:
        """Return the threads for concurrent I/O. Work done there must not wait for the pool itself."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_IO_THREADS, thread_name_prefix="lance-ops-io")
            return self._pool


@dataclass(frozen=True, slots=True)
class _Client:
    itself: Any
    let_go: Callable[[Any], object] | None


def _leave_open(clients: Iterable[Any]) -> None:
    """Keep finalizers of clients from running at this process's exit.

    Those of fsspec's file systems wait for an event loop whose thread is the parent's, and would wait for ever.
    """
    mine = {id(client) for client in clients}
    for finalizer in list(getattr(weakref.finalize, "_registry", ())):  # Python lists them nowhere else
        found = finalizer.peek()
        if found is not None and id(found[0]) in mine:
            finalizer.atexit = False


PER_PROCESS = PerProcess()
os.register_at_fork(after_in_child=PER_PROCESS.reset)
