"""Read and write objects at a URI: local disk, memory, object stores through fsspec, and a failing store for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.store.contract import (
        READ_WHOLE_BYTES,
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
    from lance_ops.store.opening import (
        bucket_and_path,
        is_local,
        is_same_bucket,
        is_well_known,
        open_store,
        path_beneath,
        with_short_timeouts,
    )
    from lance_ops.store.paths import TEMPORARY_PREFIX, check_path, check_paths
    from lance_ops.store.probe import prove_conditional_create, put_new_as_proof
    from lance_ops.store.process_resources import PROCESS_RESOURCES
    from lance_ops.store.ranges import merge_touching
    from lance_ops.store.remote import FsspecStore
    from lance_ops.store.services import gives_no_answer, is_missing_bucket, known_failure, modified_of, moment_of
    from lance_ops.store.storage_options import read_bool

__all__ = [
    "PROCESS_COUNTERS",
    "PROCESS_RESOURCES",
    "READ_WHOLE_BYTES",
    "TEMPORARY_PREFIX",
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
    "bucket_and_path",
    "bytes_read_counter",
    "check_path",
    "check_paths",
    "counted_in",
    "gives_no_answer",
    "iops_counter",
    "is_local",
    "is_missing_bucket",
    "is_same_bucket",
    "is_well_known",
    "known_failure",
    "merge_touching",
    "modified_of",
    "moment_of",
    "open_store",
    "path_beneath",
    "prove_conditional_create",
    "put_new_as_proof",
    "read_bool",
    "with_short_timeouts",
]

_MODULES = {
    "PROCESS_COUNTERS": "io_counters",
    "PROCESS_RESOURCES": "process_resources",
    "READ_WHOLE_BYTES": "contract",
    "TEMPORARY_PREFIX": "paths",
    "Buffers": "contract",
    "ByteRange": "contract",
    "BytesLike": "contract",
    "Call": "faulty",
    "Fault": "faulty",
    "FaultyStore": "faulty",
    "FsspecStore": "remote",
    "IOStats": "io_counters",
    "IoCounters": "io_counters",
    "LocalStore": "local",
    "MemoryStore": "memory",
    "ObjectInfo": "contract",
    "PutOutcome": "contract",
    "SimulatedCrash": "faulty",
    "Store": "contract",
    "StoreWriter": "contract",
    "View": "contract",
    "When": "faulty",
    "bytes_read_counter": "io_counters",
    "check_path": "paths",
    "check_paths": "paths",
    "gives_no_answer": "services",
    "is_missing_bucket": "services",
    "known_failure": "services",
    "modified_of": "services",
    "moment_of": "services",
    "bucket_and_path": "opening",
    "counted_in": "io_counters",
    "iops_counter": "io_counters",
    "is_local": "opening",
    "is_same_bucket": "opening",
    "is_well_known": "opening",
    "merge_touching": "ranges",
    "open_store": "opening",
    "path_beneath": "opening",
    "with_short_timeouts": "opening",
    "prove_conditional_create": "probe",
    "put_new_as_proof": "probe",
    "read_bool": "storage_options",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
