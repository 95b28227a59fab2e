"""What a version of a table is, as values: manifest, fragments, deletion vectors, row ids, index metadata. No I/O."""

from __future__ import annotations

from lance_ops.table.fragments.deletion_file import (
    DeletionFile,
    DeletionFileType,
    decode_deletion_vector,
    encode_deletion_vector,
)
from lance_ops.table.fragments.fragment import TOMBSTONED, DataFile, ExternalFile, Fragment, RowSequence
from lance_ops.table.fragments.fragment_list import Fragments
from lance_ops.table.index_metadata import (
    FRAGMENT_REUSE_INDEX,
    MEM_WAL_INDEX,
    IndexDetails,
    IndexFile,
    IndexMetadata,
)
from lance_ops.table.manifest.base_path import BasePath
from lance_ops.table.manifest.feature_flag import FeatureFlag
from lance_ops.table.manifest.flags import check_readable, check_writable, flags_for
from lance_ops.table.manifest.invariants import ALL_INVARIANTS, Violation, check_adds_no_violation, violations
from lance_ops.table.manifest.known_manifests import KNOWN_MANIFESTS
from lance_ops.table.manifest.manifest import WRITER, DataFormat, Manifest, WriterVersion
from lance_ops.table.manifest.manifest_bytes import (
    decode_manifest,
    decode_with_transaction,
    encode_manifest,
    inline_transaction,
)

__all__ = [
    "ALL_INVARIANTS",
    "FRAGMENT_REUSE_INDEX",
    "KNOWN_MANIFESTS",
    "MEM_WAL_INDEX",
    "TOMBSTONED",
    "WRITER",
    "BasePath",
    "DataFile",
    "DataFormat",
    "DeletionFile",
    "DeletionFileType",
    "ExternalFile",
    "FeatureFlag",
    "Fragment",
    "Fragments",
    "IndexDetails",
    "IndexFile",
    "IndexMetadata",
    "Manifest",
    "RowSequence",
    "Violation",
    "WriterVersion",
    "check_adds_no_violation",
    "check_readable",
    "check_writable",
    "decode_deletion_vector",
    "decode_manifest",
    "decode_with_transaction",
    "encode_deletion_vector",
    "encode_manifest",
    "flags_for",
    "inline_transaction",
    "violations",
]
