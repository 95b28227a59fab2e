"""Fragments of a manifest: their data files, their deletion files, and lists of them."""

from lance_ops.table.fragments.alike_deletion_files import decode_deletion_vectors
from lance_ops.table.fragments.deletion_file import (
    DeletionFile,
    DeletionFileType,
    check_deletion_file,
    decode_deletion_vector,
    deletion_checksum_report,
    encode_deletion_vector,
)
from lance_ops.table.fragments.fragment import TOMBSTONED_FIELD, DataFile, Fragment
from lance_ops.table.fragments.fragment_list import FragmentList, FragmentsById
from lance_ops.table.fragments.row_metadata import ExternalFile, RowDatasetVersionMeta, RowIdMeta, RowSequence

__all__ = [
    "TOMBSTONED_FIELD",
    "DataFile",
    "DeletionFile",
    "DeletionFileType",
    "ExternalFile",
    "Fragment",
    "FragmentList",
    "FragmentsById",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowSequence",
    "check_deletion_file",
    "decode_deletion_vector",
    "decode_deletion_vectors",
    "deletion_checksum_report",
    "encode_deletion_vector",
]
