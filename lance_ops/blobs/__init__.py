"""Blob columns of an opened version: where the bytes of a blob are, and how a writer stores them beside a data file."""

from lance_ops.blobs.blob_columns import values_schema, with_blobs_as
from lance_ops.blobs.blob_reader import BlobPlace, BlobReader, cut_by_blobs, scan_to_rewrite, take_to_rewrite
from lance_ops.blobs.blob_writer import BlobWriter, ExternalBlobs

__all__ = [
    "BlobPlace",
    "BlobReader",
    "BlobWriter",
    "ExternalBlobs",
    "cut_by_blobs",
    "scan_to_rewrite",
    "take_to_rewrite",
    "values_schema",
    "with_blobs_as",
]
