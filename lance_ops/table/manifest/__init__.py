"""Manifests: their values, their bytes, feature flags, base paths, invariants and caches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.table.manifest.base_path import BasePath
    from lance_ops.table.manifest.changed_manifest import change_manifest
    from lance_ops.table.manifest.feature_flag import FeatureFlag
    from lance_ops.table.manifest.file_locations import FileLocations, ObjectLocation
    from lance_ops.table.manifest.invariants import ALL_INVARIANTS, Violation, check_adds_no_violation, violations
    from lance_ops.table.manifest.manifest import WRITER, DataFormat, Manifest, WriterVersion
    from lance_ops.table.manifest.manifest_bytes import (
        decode_manifest,
        decode_summary,
        decode_with_transaction,
        encode_manifest,
        inline_transaction,
        manifest_checksum_report,
    )
    from lance_ops.table.manifest.manifest_cache import MANIFEST_CACHE
    from lance_ops.table.manifest.required_features import check_readable, check_writable, flags_for
    from lance_ops.table.manifest.version_summary import VersionSummary

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
    "VersionSummary",
    "Violation",
    "WriterVersion",
    "change_manifest",
    "check_adds_no_violation",
    "check_readable",
    "check_writable",
    "decode_manifest",
    "decode_summary",
    "decode_with_transaction",
    "encode_manifest",
    "flags_for",
    "inline_transaction",
    "manifest_checksum_report",
    "violations",
]

_MODULES = {
    "ALL_INVARIANTS": "invariants",
    "MANIFEST_CACHE": "manifest_cache",
    "WRITER": "manifest",
    "BasePath": "base_path",
    "DataFormat": "manifest",
    "FeatureFlag": "feature_flag",
    "FileLocations": "file_locations",
    "Manifest": "manifest",
    "ObjectLocation": "file_locations",
    "VersionSummary": "version_summary",
    "Violation": "invariants",
    "WriterVersion": "manifest",
    "change_manifest": "changed_manifest",
    "check_adds_no_violation": "invariants",
    "check_readable": "required_features",
    "check_writable": "required_features",
    "decode_manifest": "manifest_bytes",
    "decode_summary": "manifest_bytes",
    "decode_with_transaction": "manifest_bytes",
    "encode_manifest": "manifest_bytes",
    "flags_for": "required_features",
    "inline_transaction": "manifest_bytes",
    "manifest_checksum_report": "manifest_bytes",
    "violations": "invariants",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
