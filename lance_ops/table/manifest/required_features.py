"""Check and compute feature flags: the features that a reader or a writer must support to use a version.

A manifest has two words of bits, one for readers and one for writers. A set bit that this library does not know means
that it must not read, or write, the table. Most bits follow from the manifest's content and are computed anew at every
commit.
"""

from __future__ import annotations

from collections.abc import Iterable

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.versions import FileVersion
from lance_ops.table.fragments import Fragment
from lance_ops.table.manifest.feature_flag import FeatureFlag
from lance_ops.table.manifest.manifest import Manifest

__all__ = ["check_readable", "check_writable", "flags_for", "flags_with"]


_READABLE = (
    FeatureFlag.DELETION_FILES
    | FeatureFlag.STABLE_ROW_IDS
    | FeatureFlag.V2_FORMAT
    | FeatureFlag.TABLE_CONFIG
    | FeatureFlag.BASE_PATHS
    | FeatureFlag.INLINE_TRANSACTIONS_ONLY
    | FeatureFlag.COVERING_INDICES
    | FeatureFlag.MIXED_FILE_VERSIONS
    # Retired fragments stay in the bitmaps of indices; a reader that ignores them scans those rows.
    | FeatureFlag.FRAGMENT_REUSE_TRANSITIONS
)
_WRITABLE = _READABLE & ~FeatureFlag.FRAGMENT_REUSE_TRANSITIONS
_DELETION_FILES = FeatureFlag.DELETION_FILES.value
_STABLE_ROW_IDS = FeatureFlag.STABLE_ROW_IDS.value
_TABLE_CONFIG = FeatureFlag.TABLE_CONFIG.value
_BASE_PATHS = FeatureFlag.BASE_PATHS.value
_COVERING_INDICES = FeatureFlag.COVERING_INDICES.value
_MIXED_FILE_VERSIONS = FeatureFlag.MIXED_FILE_VERSIONS.value
_STICKY = _MIXED_FILE_VERSIONS | _STABLE_ROW_IDS


def check_readable(manifest: Manifest, path: str) -> None:
    """Raise `UnsupportedFeature` if this library lacks a feature that readers need; `path` names the manifest."""
    _check(manifest.reader_feature_flags, _READABLE, "reading", path)
    FileVersion.from_manifest(manifest.data_format.version, path)


def check_writable(manifest: Manifest, path: str) -> None:
    """Raise `UnsupportedFeature` if this library lacks a feature that readers or writers need."""
    check_readable(manifest, path)
    _check(manifest.writer_feature_flags, _WRITABLE, "writing", path)


def flags_for(manifest: Manifest, before: Manifest | None = None) -> tuple[int, int]:
    """Return the (reader, writer) words for a manifest's content; sticky bits that are set stay set.

    Fragments carried over unchanged keep the flags that the manifest `before` recorded, so only new fragments are
    inspected.
    """
    if before is None or before.data_format != manifest.data_format:
        return flags_with(manifest, manifest.fragments)
    changes = manifest.fragments.changes_since(before.fragments)
    reader, writer = flags_with(manifest, changes.new)
    had_deletions = before.reader_feature_flags & _DELETION_FILES
    if had_deletions and (manifest.fragments.have_deletions if changes.some_are_gone else len(before.fragments)):
        return reader | _DELETION_FILES, writer | _DELETION_FILES
    return reader, writer


def flags_with(manifest: Manifest, fragments: Iterable[Fragment]) -> tuple[int, int]:
    """Return the (reader, writer) words for a manifest's content, with these fragments instead of its own."""
    default = FileVersion.from_manifest(manifest.data_format.version, f"version {manifest.version}")
    both = manifest.reader_feature_flags & _STICKY
    numbers: set[tuple[int, int]] = set()
    for fragment in fragments:
        if fragment.deletion_file is not None:
            both |= _DELETION_FILES
        if fragment.row_ids is not None:
            both |= _STABLE_ROW_IDS
        for file in fragment.files:
            numbers.add(file.numbers)
    if manifest.base_paths:
        both |= _BASE_PATHS
    if any(index.covering_fields for index in manifest.indices):
        both |= _COVERING_INDICES
    if default is not FileVersion.V0_1 and any(
        FileVersion.from_numbers(*each, where="manifest") is not default for each in numbers
    ):
        both |= _MIXED_FILE_VERSIONS
    return both, both | _TABLE_CONFIG if manifest.config else both


def _check(word: int, known: FeatureFlag, verb: str, path: str) -> None:
    refused = word & ~int(known)
    if refused:
        names = [flag.name or str(flag.value) for flag in FeatureFlag if flag & refused]
        names += [f"bit {bit}" for bit in range(64) if refused >> bit & 1 and (1 << bit) not in list(FeatureFlag)]
        raise UnsupportedFeature(f"{verb} a table with feature flags {', '.join(names)}", path)
