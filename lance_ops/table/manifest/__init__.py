"""Manifests: their values, their bytes, feature flags, base paths, invariants and caches."""

from lance_ops.table.manifest.base_path import BasePath
from lance_ops.table.manifest.feature_flag import FeatureFlag
from lance_ops.table.manifest.file_locations import FileLocations, ObjectLocation
from lance_ops.table.manifest.invariants import ALL_INVARIANTS, Violation, check_adds_no_violation, violations
from lance_ops.table.manifest.manifest import WRITER, DataFormat, Manifest, WriterVersion
from lance_ops.table.manifest.manifest_bytes import (
    decode_manifest,
    decode_with_transaction,
    encode_manifest,
    inline_transaction,
    manifest_checksum_report,
)
from lance_ops.table.manifest.manifest_cache import MANIFEST_CACHE
from lance_ops.table.manifest.required_features import check_readable, check_writable, flags_for

__all__ = [
    "ALL_INVARIANTS",
    "MANIFEST_CACHE",
    "WRITER",
    "BasePath",
    "DataFormat",
    "FeatureFlag",
    "FileLocations",
    "Manifest",
    "ObjectLocation",
    "Violation",
    "WriterVersion",
    "check_adds_no_violation",
    "check_readable",
    "check_writable",
    "decode_manifest",
    "decode_with_transaction",
    "encode_manifest",
    "flags_for",
    "inline_transaction",
    "manifest_checksum_report",
    "violations",
]
