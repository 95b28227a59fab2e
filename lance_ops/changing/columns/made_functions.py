"""Functions that a factory makes once in each process: a model is loaded once, however many batches it is called with.

A task carries the factory and the identity of the function, never the function. A process keeps the function that it
used last, so that an executor's memory holds one model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from threading import Lock
from typing import Any
from uuid import uuid4

import pyarrow as pa

from lance_ops.core.records import dataclass

__all__ = ["MadeFunction"]

BatchFunction = Callable[[pa.RecordBatch], Any]


@dataclass(frozen=True)
class MadeFunction:
    """Calls the function that `factory` returns. Pickles of one are the same function, made once a process."""

    factory: Callable[[], BatchFunction]
    identity: str = field(default_factory=lambda: uuid4().hex)

    def __call__(self, batch: pa.RecordBatch) -> Any:
        """Call the function; the first call in a process makes it."""
        return _LAST_MADE.get(self)(batch)


class _LastMade:
    """The function that this process made last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: tuple[str, BatchFunction] | None = None

    def get(self, wanted: MadeFunction) -> BatchFunction:
        with self._lock:  # two threads must not load a model each
            if self._made is None or self._made[0] != wanted.identity:
                self._made = None  # let go of the last one first: both may not fit into memory
                self._made = wanted.identity, wanted.factory()
            return self._made[1]


_LAST_MADE = _LastMade()
