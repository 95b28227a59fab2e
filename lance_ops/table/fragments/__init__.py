"""Fragments, data files and deletion files, as a manifest names them."""

from lance_ops.table.fragments.deletion_file import (
    DeletionFile,
    DeletionFileType,
    decode_deletion_vector,
    encode_deletion_vector,
)
from lance_ops.table.fragments.fragment import TOMBSTONED, DataFile, ExternalFile, Fragment, RowSequence
from lance_ops.table.fragments.fragment_list import Fragments

__all__ = [
    "TOMBSTONED",
    "DataFile",
    "DeletionFile",
    "DeletionFileType",
    "ExternalFile",
    "Fragment",
    "Fragments",
    "RowSequence",
    "decode_deletion_vector",
    "encode_deletion_vector",
]
