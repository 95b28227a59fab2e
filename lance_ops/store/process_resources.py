"""Hold what all stores of a process share and a forked child must not use: clients of servers, and threads for I/O.

A client holds connections and perhaps an event loop's thread. Neither survives a fork, so a child makes its own.
fsspec's cache of file systems is not used: it keeps one for each thread and lists directories from memory.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from lance_ops.core.records import dataclass
from lance_ops.core.threads import KeyedLocks, ThreadPool
from lance_ops.store.inherited_finalizers import keep_from_running

__all__ = ["PROCESS_RESOURCES", "ProcessResources"]

_IO_THREADS = 16
# A client of S3 takes 13 MB. Each renewal of credentials makes a new client.
_MOST_CLIENTS = 32


class ProcessResources:
    """The clients and threads of one process."""

    def __init__(self) -> None:
        self._clients: OrderedDict[object, _Entry] = OrderedDict()
        self._clients_of_parents: list[OrderedDict[object, _Entry]] = []
        self.reset()

    def reset(self) -> None:
        """Start empty, as a forked child must.

        The clients belong to the parent. They are not closed, and references to them are kept: when some clients are
        collected, they send a farewell over a connection that the parent still uses.
        """
        self._clients_of_parents.append(self._clients)
        keep_from_running(entry.client for entry in self._clients.values())
        self._lock = threading.Lock()
        self._making = KeyedLocks(threading.Lock)
        self._clients = OrderedDict()
        self._threads: ThreadPool | None = None

    def client(self, key: object, make: Callable[[], Any], on_evict: Callable[[Any], object] | None = None) -> Any:
        """Return the client for `key`, made at first use. The clients that were used last are kept.

        A slow `make` delays only callers that want the same key. `on_evict` is called with a client that is no longer
        kept; it must not close the client, which other threads may still use.
        """
        if (client := self._kept(key)) is not None:
            return client
        turn = self._making.of(key)
        with turn.lock:
            if (client := self._kept(key)) is not None:
                return client
            client = make()
            with self._lock:
                self._clients[key] = _Entry(client, on_evict)
                oldest = self._clients.popitem(last=False)[1] if len(self._clients) > _MOST_CLIENTS else None
        if oldest is not None and oldest.on_evict is not None:
            oldest.on_evict(oldest.client)
        return client

    def threads(self) -> ThreadPool:
        """Return the threads for concurrent I/O. Work done there must not wait for other work there."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPool(_IO_THREADS, thread_name_prefix="lance-ops-io")
            return self._threads

    def _kept(self, key: object) -> Any:
        """Return the client that is kept for `key` and mark it as used, or None."""
        with self._lock:
            if key not in self._clients:
                return None
            self._clients.move_to_end(key)
            return self._clients[key].client


@dataclass(frozen=True, slots=True)
class _Entry:
    client: Any
    on_evict: Callable[[Any], object] | None


PROCESS_RESOURCES = ProcessResources()
os.register_at_fork(after_in_child=PROCESS_RESOURCES.reset)
