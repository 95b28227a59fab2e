"""Bytes at a URI: local disk, memory, object stores through fsspec, and a store that fails on demand for tests."""

from __future__ import annotations

from lance_ops.store.contract import Buffers, ByteRange, BytesLike, ObjectInfo, PutOutcome, Store, StoreWriter
from lance_ops.store.local import LocalStore
from lance_ops.store.memory import MemoryStore

__all__ = [
    "Buffers",
    "ByteRange",
    "BytesLike",
    "LocalStore",
    "MemoryStore",
    "ObjectInfo",
    "PutOutcome",
    "Store",
    "StoreWriter",
]
