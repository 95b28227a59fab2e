"""Write a large local file piece by piece: staged beside its target, and on its way to the disk while it grows."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from lance_ops.store.contract import BytesLike, StoreWriter
from lance_ops.store.io_counters import IoCounters
from lance_ops.store.local.reserve import reserve_space
from lance_ops.store.local.staging import create_temporary, discard, publish
from lance_ops.store.local.writeback import start_writeback

__all__ = ["LocalWriter"]

_BUFFER_BYTES = 64 << 10
# Each time this many bytes were written, the system begins to write them to the disk.
_FLUSH_BYTES = 4 << 20
# For a write of at least this many bytes, disk space is reserved first.
_RESERVED_BYTES = 256 << 10


class LocalWriter(StoreWriter):
    """Writes `target`. `fail` is called with each `OSError` and raises it as the store's error."""

    def __init__(self, target: str, durable: bool, fail: Callable[[OSError], None], counters: IoCounters) -> None:
        self._target = target
        self._durable = durable
        self._fail = fail
        self._counters = counters
        self._staged, descriptor = create_temporary(os.path.dirname(target))
        self._file = open(descriptor, "wb", buffering=_BUFFER_BYTES)  # noqa: SIM115 # `close` and `abort` close it
        self._num_bytes = 0
        self._num_flushed = 0

    def write(self, data: BytesLike) -> None:
        size = memoryview(data).nbytes
        try:
            if size >= _RESERVED_BYTES:
                reserve_space(self._file.fileno(), self._num_bytes, size)
            self._file.write(data)
        except OSError as error:
            self._fail(error)
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
            # If most bytes are on their way to the disk already, nothing is saved by syncing later.
            publish(self._staged, self._target, self._durable or self._num_flushed > 0)
            self._file.close()
        except BaseException as error:
            self.abort()
            if isinstance(error, OSError):
                self._fail(error)
            raise
        self._counters.add_write(self._num_bytes)

    def abort(self) -> None:
        if self._file.closed:
            return
        with suppress(OSError):  # the buffered rest may fail to reach the disk, where nobody needs it
            self._file.close()
        discard(self._staged)
