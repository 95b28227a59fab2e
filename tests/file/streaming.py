"""A store that reads by ranges, as remote stores do, and records the ranges that were read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_ops.store.contract import ByteRange
from lance_ops.store.memory import MemoryStore

__all__ = ["StreamedStore", "as_streamed"]


class StreamedStore(MemoryStore):
    """The objects of another memory store, read only by ranges."""

    reads_in_place = False

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__()
        self._inner = inner
        self.reads: list[ByteRange] = []

    def get(self, path: str) -> pa.Buffer:
        raise AssertionError("the whole object was read")

    def size(self, path: str) -> int:
        return self._inner.size(path)

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Any:
        self.reads.extend(ranges)
        return [pa.py_buffer(buffer.to_pybytes()) for buffer in self._inner.get_ranges(path, ranges)]


def as_streamed(path: Path) -> StreamedStore:
    """Return a store with a copy of a local file, under the file's name."""
    inner = MemoryStore()
    inner.put(path.name, path.read_bytes())
    return StreamedStore(inner)
