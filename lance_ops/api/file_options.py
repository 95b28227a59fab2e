"""Check the options for the files of a write, given under the reference's names."""

from __future__ import annotations

import warnings

from lance_ops import blobs, writing
from lance_ops.core.errors import InvalidInput

__all__ = ["fragment_limits", "storage_version"]


def fragment_limits(
    max_rows_per_file: int = writing.MAX_ROWS_PER_FILE,
    max_bytes_per_file: int = writing.MAX_BYTES_PER_FILE,
    external_blob_mode: str = "reference",
    allow_external_blob_outside_bases: bool = False,
    *,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    blob_pack_file_size_threshold: int | None = None,
    progress: writing.FragmentWriteProgress | None = None,
) -> writing.FragmentLimits:
    """Return the limits for fragments; raise `InvalidInput` for an invalid size or an unknown mode."""
    if progress is not None and not isinstance(progress, writing.FragmentWriteProgress):
        raise InvalidInput(f"progress must be a FragmentWriteProgress, not {progress!r}")
    return writing.FragmentLimits(
        max_rows_per_file,
        max_bytes_per_file,
        _external_blobs(external_blob_mode, allow_external_blob_outside_bases),
        cache_bytes=data_cache_bytes,
        max_page_bytes=max_page_bytes,
        pack_file_bytes=blob_pack_file_size_threshold,
        progress=progress,
    )


def storage_version(data_storage_version: str | None, use_legacy_format: bool | None) -> str | None:
    """Return the requested file version; the names of the reference's first releases are accepted too."""
    if use_legacy_format is None:
        return data_storage_version
    warnings.warn("use_legacy_format is deprecated, use data_storage_version instead", DeprecationWarning, stacklevel=3)
    return "legacy" if use_legacy_format else "stable"


def _external_blobs(mode: str, allow_outside_bases: bool) -> blobs.ExternalBlobs:
    """Return how a write treats blobs that are URIs of other objects."""
    match mode:
        case "reference":
            return blobs.ExternalBlobs.REFERENCE if allow_outside_bases else blobs.ExternalBlobs.REFUSE
        case "ingest" if not allow_outside_bases:
            return blobs.ExternalBlobs.INGEST
        case "ingest":
            raise InvalidInput(
                "allow_external_blob_outside_bases is for blobs that stay there: none does that is ingested"
            )
        case _:
            raise InvalidInput(f"external_blob_mode {mode!r} is none of reference, ingest")
