"""Keep what files say about their columns in the process, because every new handle opens its files anew.

An entry stands for bytes and not for a name: see `View.identity`. It has positions of pages and chunks, dictionaries
and symbol tables, but no map and no descriptor.

Gain: a row by its key, found by a new handle, takes 0.74 to 0.82 of the processor time (ADR 19). Switch off with
`LANCE_OPS_DISABLE=decoded-files`.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable

from lance_ops.core.tricks import Trick
from lance_ops.file.page_reading import FileSource
from lance_ops.file.v2_1.reader import V21File

__all__ = ["DECODED_FILES", "DecodedFiles"]

_LEAST_BYTES = 32 << 10
"""What a file takes besides `decoded_bytes`, above all its last bytes."""


class DecodedFiles:
    """The files that were opened last, in about `capacity_bytes` of memory.

    Handles that open the same bytes share what any of them has decoded.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self.reset()

    def find(self, identity: Hashable | None) -> V21File | None:
        """Return the file that was opened from these bytes; None if none is kept, and for an identity of None."""
        if not _is_kept(identity):
            return None
        with self._lock:
            known = self._files.get(identity)
            if known is not None:
                self._files.move_to_end(identity)
        return known

    def open(self, identity: Hashable | None, source: FileSource, tail: bytes) -> V21File:
        """Return what `V21File` does for this source; `identity` names its bytes, None if nothing does."""
        known = self.find(identity)
        if known is not None:
            return known.read_from(source)
        opened = V21File(source, tail)
        if not _is_kept(identity):
            return opened
        with self._lock:
            if identity not in self._files:  # another thread may have opened it meanwhile
                self._files[identity] = opened
                self._num_bytes += _LEAST_BYTES + opened.decoded_bytes
            while self._num_bytes > self._capacity_bytes:
                _, oldest = self._files.popitem(last=False)
                self._num_bytes -= _LEAST_BYTES + oldest.decoded_bytes
        return opened

    def reset(self) -> None:
        """Forget every file and renew the lock: in a forked child, the thread that held the lock does not exist."""
        self._files: OrderedDict[Hashable, V21File] = OrderedDict()
        self._num_bytes = 0
        self._lock = threading.Lock()


def _is_kept(identity: Hashable | None) -> bool:
    return identity is not None and Trick.DECODED_FILES.is_on()


DECODED_FILES = DecodedFiles(capacity_bytes=64 << 20)
os.register_at_fork(after_in_child=DECODED_FILES.reset)
