"""Read and write blob columns: locate and fetch the bytes of blobs, and store them beside a data file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.blobs.blob_conversion import schema_to_write, walk_blobs, with_blobs_as
    from lance_ops.blobs.blob_reader import (
        BlobLocation,
        BlobReader,
        scan_to_rewrite,
        split_by_blob_bytes,
        take_to_rewrite,
    )
    from lance_ops.blobs.blob_writer import BlobWriter
    from lance_ops.blobs.external_blobs import ExternalBlobs

__all__ = [
    "BlobLocation",
    "BlobReader",
    "BlobWriter",
    "ExternalBlobs",
    "scan_to_rewrite",
    "schema_to_write",
    "split_by_blob_bytes",
    "take_to_rewrite",
    "walk_blobs",
    "with_blobs_as",
]

_MODULES = {
    "BlobLocation": "blob_reader",
    "BlobReader": "blob_reader",
    "BlobWriter": "blob_writer",
    "ExternalBlobs": "external_blobs",
    "scan_to_rewrite": "blob_reader",
    "schema_to_write": "blob_conversion",
    "split_by_blob_bytes": "blob_reader",
    "take_to_rewrite": "blob_reader",
    "walk_blobs": "blob_conversion",
    "with_blobs_as": "blob_conversion",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
