"""Read and write blob columns: locate and fetch the bytes of blobs, and store them beside a data file."""

from lance_ops.blobs.blob_conversion import schema_to_write, walk_blobs, with_blobs_as
from lance_ops.blobs.blob_reader import BlobLocation, BlobReader, scan_to_rewrite, split_by_blob_bytes, take_to_rewrite
from lance_ops.blobs.blob_writer import BlobWriter, ExternalBlobs

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
