"""Feature flags: what a reader, or a writer, must know to handle a version.

Two words of bits, one for readers and one for writers. A set bit that is not known here means hands off. Most bits say
no more than what the manifest's content already shows, and are computed anew at every commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.versions import FileVersion
from lance_ops.table.feature_flag import FeatureFlag
from lance_ops.table.fragment import Fragment
from lance_ops.table.manifest import Manifest

__all__ = ["check_readable", "check_writable", "flags_for"]


_READABLE = (
    FeatureFlag.DELETION_FILES
    | FeatureFlag.STABLE_ROW_IDS
    | FeatureFlag.V2_FORMAT
    | FeatureFlag.TABLE_CONFIG
    | FeatureFlag.BASE_PATHS
    | FeatureFlag.INLINE_TRANSACTIONS_ONLY
    | FeatureFlag.COVERING_INDICES
    | FeatureFlag.MIXED_FILE_VERSIONS
    # Retired fragments stay in the bitmaps of indices: a reader that does not follow them scans those rows.
    | FeatureFlag.FRAGMENT_REUSE_TRANSITIONS
)
_WRITABLE = _READABLE & ~FeatureFlag.FRAGMENT_REUSE_TRANSITIONS
_STICKY = (FeatureFlag.MIXED_FILE_VERSIONS | FeatureFlag.STABLE_ROW_IDS).value


def check_readable(manifest: Manifest, path: str) -> None:
    """Raise `UnsupportedFeature` for a table that needs a reader who knows more; `path` names the manifest."""
    _check(manifest.reader_feature_flags, _READABLE, "reading", path)
    FileVersion.from_manifest(manifest.data_format.version, path)


def check_writable(manifest: Manifest, path: str) -> None:
    """Raise `UnsupportedFeature` for a table that needs a writer who knows more."""
    check_readable(manifest, path)
    _check(manifest.writer_feature_flags, _WRITABLE, "writing", path)


def flags_for(manifest: Manifest, before: Manifest | None = None) -> tuple[int, int]:
    """Return the (reader, writer) words for a manifest's content; what it already says counts for sticky bits.

    Of fragments taken over from the version `before`, its own words tell, so that few are looked at.
    """
    both = manifest.reader_feature_flags & _STICKY
    fragments: Sequence[Fragment] = manifest.fragments
    if before is not None and before.data_format == manifest.data_format:
        fragments, some_are_gone = manifest.fragments.since(before.fragments)
        had_deletions = bool(before.reader_feature_flags & FeatureFlag.DELETION_FILES.value)
        if had_deletions and (manifest.fragments.have_deletions if some_are_gone else len(before.fragments)):
            both |= FeatureFlag.DELETION_FILES.value
    if any(fragment.deletion_file is not None for fragment in fragments):
        both |= FeatureFlag.DELETION_FILES.value
    if any(fragment.row_ids is not None for fragment in fragments):
        both |= FeatureFlag.STABLE_ROW_IDS.value
    if manifest.base_paths:
        both |= FeatureFlag.BASE_PATHS.value
    if any(index.covering_fields for index in manifest.indices):
        both |= FeatureFlag.COVERING_INDICES.value
    if _mixes_file_versions(manifest, fragments):
        both |= FeatureFlag.MIXED_FILE_VERSIONS.value
    return both, both | FeatureFlag.TABLE_CONFIG.value if manifest.config else both


def _mixes_file_versions(manifest: Manifest, fragments: Iterable[Fragment]) -> bool:
    default = FileVersion.from_manifest(manifest.data_format.version, f"version {manifest.version}")
    if default is FileVersion.V0_1:
        return False
    numbers = {file.numbers for fragment in fragments for file in fragment.files}
    return any(FileVersion.from_numbers(*each, where="manifest") is not default for each in numbers)


def _check(word: int, known: FeatureFlag, verb: str, path: str) -> None:
    refused = word & ~int(known)
    if refused:
        names = [flag.name or str(flag.value) for flag in FeatureFlag if flag & refused]
        names += [f"bit {bit}" for bit in range(64) if refused >> bit & 1 and (1 << bit) not in list(FeatureFlag)]
        raise UnsupportedFeature(f"{verb} a table with feature flags {', '.join(names)}", path)
