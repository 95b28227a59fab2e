"""One version of a dataset, opened: its manifest, its fragments' rows, deletion vectors and row ids, and its files."""

from lance_ops.snapshot.alike_fragments import open_alike
from lance_ops.snapshot.caches import Session
from lance_ops.snapshot.checksum_use import VERIFY_CHECKSUMS_KEY, ChecksumUse
from lance_ops.snapshot.expansion import FREE_SORTED_BYTES, FREE_SORTED_ROWS, check_rows_are_stored, limit_held_bytes
from lance_ops.snapshot.file_listing import Progress, all_files, tracked_files
from lance_ops.snapshot.fragment_reader import FragmentReader
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.snapshot.snapshot_reference import SnapshotReference
from lance_ops.snapshot.stored_sizes import field_sizes, projected_sizes
from lance_ops.snapshot.validation import validate, validate_fragment
from lance_ops.snapshot.version_history import history, past_manifests, snapshot_as_of

__all__ = [
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
    "past_manifests",
    "projected_sizes",
    "snapshot_as_of",
    "tracked_files",
    "validate",
    "validate_fragment",
]
