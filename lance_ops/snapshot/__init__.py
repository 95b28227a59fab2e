"""One version of a dataset, opened: its manifest, its fragments' rows, deletion vectors and row ids, and its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.snapshot.alike_fragments import open_alike
    from lance_ops.snapshot.caches import Session
    from lance_ops.snapshot.checksum_use import VERIFY_CHECKSUMS_KEY, ChecksumUse
    from lance_ops.snapshot.expansion import (
        FREE_SORTED_BYTES,
        FREE_SORTED_ROWS,
        check_rows_are_stored,
        limit_held_bytes,
    )
    from lance_ops.snapshot.file_listing import Progress, all_files, tracked_files
    from lance_ops.snapshot.fragment_reader import FragmentReader
    from lance_ops.snapshot.snapshot import AUTO_CLEANUP_INTERVAL, Snapshot
    from lance_ops.snapshot.snapshot_reference import SnapshotReference
    from lance_ops.snapshot.stored_sizes import field_sizes, projected_sizes
    from lance_ops.snapshot.validation import validate, validate_fragment
    from lance_ops.snapshot.version_history import history, snapshot_as_of, version_summaries

__all__ = [
    "AUTO_CLEANUP_INTERVAL",
    "FREE_SORTED_BYTES",
    "FREE_SORTED_ROWS",
    "VERIFY_CHECKSUMS_KEY",
    "ChecksumUse",
    "FragmentReader",
    "Progress",
    "Session",
    "Snapshot",
    "SnapshotReference",
    "all_files",
    "check_rows_are_stored",
    "field_sizes",
    "history",
    "limit_held_bytes",
    "open_alike",
    "projected_sizes",
    "snapshot_as_of",
    "tracked_files",
    "validate",
    "validate_fragment",
    "version_summaries",
]

_MODULES = {
    "FREE_SORTED_BYTES": "expansion",
    "FREE_SORTED_ROWS": "expansion",
    "AUTO_CLEANUP_INTERVAL": "snapshot",
    "VERIFY_CHECKSUMS_KEY": "checksum_use",
    "ChecksumUse": "checksum_use",
    "FragmentReader": "fragment_reader",
    "Progress": "file_listing",
    "Session": "caches",
    "Snapshot": "snapshot",
    "SnapshotReference": "snapshot_reference",
    "all_files": "file_listing",
    "check_rows_are_stored": "expansion",
    "field_sizes": "stored_sizes",
    "history": "version_history",
    "limit_held_bytes": "expansion",
    "open_alike": "alike_fragments",
    "projected_sizes": "stored_sizes",
    "snapshot_as_of": "version_history",
    "tracked_files": "file_listing",
    "validate": "validation",
    "validate_fragment": "validation",
    "version_summaries": "version_history",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
