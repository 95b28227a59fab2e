"""The reference's `lance.blob`: blobs as values of Arrow, and as files."""

from lance_ops.api import Blob, BlobArray, BlobColumn, BlobFile, BlobType, blob_array, blob_field

__all__ = ["Blob", "BlobArray", "BlobColumn", "BlobFile", "BlobType", "blob_array", "blob_field"]
