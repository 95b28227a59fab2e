"""Read and write objects at a URI: local disk, memory, object stores through fsspec, and a failing store for tests."""

from __future__ import annotations

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
from lance_ops.store.faulty import Call, Fault, FaultyStore, SimulatedCrash, When
from lance_ops.store.io_counters import (
    PROCESS_COUNTERS,
    IoCounters,
    IOStats,
    bytes_read_counter,
    counted_in,
    iops_counter,
)
from lance_ops.store.local import LocalStore
from lance_ops.store.memory import MemoryStore
from lance_ops.store.opening import is_local, is_same_bucket, is_well_known, open_store, path_beneath
from lance_ops.store.paths import check_path
from lance_ops.store.probe import prove_conditional_create
from lance_ops.store.process_resources import PROCESS_RESOURCES
from lance_ops.store.ranges import merge_touching
from lance_ops.store.remote import FsspecStore
from lance_ops.store.storage_options import read_bool

__all__ = [
    "PROCESS_COUNTERS",
    "PROCESS_RESOURCES",
    "Buffers",
    "ByteRange",
    "BytesLike",
    "Call",
    "Fault",
    "FaultyStore",
    "FsspecStore",
    "IOStats",
    "IoCounters",
    "LocalStore",
    "MemoryStore",
    "ObjectInfo",
    "PutOutcome",
    "SimulatedCrash",
    "Store",
    "StoreWriter",
    "View",
    "When",
    "bytes_read_counter",
    "check_path",
    "counted_in",
    "iops_counter",
    "is_local",
    "is_same_bucket",
    "is_well_known",
    "merge_touching",
    "open_store",
    "path_beneath",
    "prove_conditional_create",
    "read_bool",
]
