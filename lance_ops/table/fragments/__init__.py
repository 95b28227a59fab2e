"""Fragments of a manifest: their data files, their deletion files, and lists of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.table.fragments.alike_deletion_files import decode_deletion_vectors
    from lance_ops.table.fragments.deletion_file import (
        DeletionFile,
        DeletionFileType,
        check_deletion_file,
        decode_deletion_vector,
        deletion_checksum_report,
        encode_deletion_vector,
    )
    from lance_ops.table.fragments.fragment import (
        TOMBSTONED_FIELD,
        DataFile,
        Fragment,
        with_deletion_file,
        with_tombstones,
    )
    from lance_ops.table.fragments.fragment_list import FragmentList, FragmentsById, FragmentTotals
    from lance_ops.table.fragments.row_metadata import ExternalFile, RowDatasetVersionMeta, RowIdMeta, RowSequence

__all__ = [
    "TOMBSTONED_FIELD",
    "DataFile",
    "DeletionFile",
    "DeletionFileType",
    "ExternalFile",
    "Fragment",
    "FragmentList",
    "FragmentTotals",
    "FragmentsById",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowSequence",
    "check_deletion_file",
    "decode_deletion_vector",
    "decode_deletion_vectors",
    "deletion_checksum_report",
    "encode_deletion_vector",
    "with_deletion_file",
    "with_tombstones",
]

_MODULES = {
    "TOMBSTONED_FIELD": "fragment",
    "DataFile": "fragment",
    "DeletionFile": "deletion_file",
    "DeletionFileType": "deletion_file",
    "ExternalFile": "row_metadata",
    "Fragment": "fragment",
    "FragmentList": "fragment_list",
    "FragmentTotals": "fragment_list",
    "FragmentsById": "fragment_list",
    "RowDatasetVersionMeta": "row_metadata",
    "RowIdMeta": "row_metadata",
    "RowSequence": "row_metadata",
    "check_deletion_file": "deletion_file",
    "decode_deletion_vector": "deletion_file",
    "decode_deletion_vectors": "alike_deletion_files",
    "deletion_checksum_report": "deletion_file",
    "encode_deletion_vector": "deletion_file",
    "with_deletion_file": "fragment",
    "with_tombstones": "fragment",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
