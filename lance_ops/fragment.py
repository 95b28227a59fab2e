"""The reference's `lance.fragment`: what writes and changes fragments apart from commits."""

from lance_ops.api import (
    BatchUDF,
    DataFile,
    DeletionFile,
    FragmentMetadata,
    FragmentSession,
    FragmentWriteProgress,
    LanceFragment,
    NoopFragmentWriteProgress,
    RowDatasetVersionMeta,
    RowIdMeta,
    RowIdSequence,
    write_fragments,
)

__all__ = [
    "BatchUDF",
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "FragmentSession",
    "FragmentWriteProgress",
    "LanceFragment",
    "NoopFragmentWriteProgress",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowIdSequence",
    "write_fragments",
]
