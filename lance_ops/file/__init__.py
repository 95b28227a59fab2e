"""Read and write single data files of every file version.

`LanceFileReader` and `LanceFileWriter` are the reference implementation's API. They use `FileReader` and `FileWriter`,
which datasets use directly: these work on a store and know fields by their ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use
from lance_ops.encodings import MAX_RATIO

if TYPE_CHECKING:
    from lance_ops.file.alike_files import WHOLE_FILE_BYTES, AlikeFiles
    from lance_ops.file.arrow_values import copy_array, reorder
    from lance_ops.file.blob_sidecar import SidecarWriter, verified_sidecar
    from lance_ops.file.checksums import checksum_report, copy_verified, read_verified
    from lance_ops.file.copied_columns import columns_to_append, columns_to_copy, stores_field_alike
    from lance_ops.file.file_session import LanceFileSession, ListResult
    from lance_ops.file.open_file import DescribedFile
    from lance_ops.file.page_reading import (
        READ_BYTES,
        Budget,
        FileSource,
        Ranges,
        RowSelection,
        RowSet,
        RowSlice,
        SharedBytes,
        row_bytes,
    )
    from lance_ops.file.reader import FileReader
    from lance_ops.file.reference_api import (
        LanceBufferDescriptor,
        LanceColumnMetadata,
        LanceFileMetadata,
        LanceFileReader,
        LanceFileStatistics,
        LanceFileWriter,
        LancePageMetadata,
        ReaderResults,
        stable_version,
    )
    from lance_ops.file.several_files import FileRows, can_read_together, read_files_together
    from lance_ops.file.v0_1 import Dictionaries
    from lance_ops.file.writer import FileWriter, WrittenFile, page_budget

__all__ = [
    "MAX_RATIO",
    "READ_BYTES",
    "WHOLE_FILE_BYTES",
    "AlikeFiles",
    "Budget",
    "DescribedFile",
    "Dictionaries",
    "FileReader",
    "FileRows",
    "FileSource",
    "FileWriter",
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileSession",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "ListResult",
    "Ranges",
    "ReaderResults",
    "RowSelection",
    "RowSet",
    "RowSlice",
    "SharedBytes",
    "SidecarWriter",
    "WrittenFile",
    "can_read_together",
    "checksum_report",
    "columns_to_append",
    "columns_to_copy",
    "copy_array",
    "copy_verified",
    "page_budget",
    "read_files_together",
    "read_verified",
    "reorder",
    "row_bytes",
    "stable_version",
    "stores_field_alike",
    "verified_sidecar",
]

_MODULES = {
    "READ_BYTES": "page_reading",
    "WHOLE_FILE_BYTES": "alike_files",
    "AlikeFiles": "alike_files",
    "Budget": "page_reading",
    "DescribedFile": "open_file",
    "Dictionaries": "v0_1",
    "FileReader": "reader",
    "FileRows": "several_files",
    "FileSource": "page_reading",
    "FileWriter": "writer",
    "LanceBufferDescriptor": "reference_api",
    "LanceColumnMetadata": "reference_api",
    "LanceFileMetadata": "reference_api",
    "LanceFileReader": "reference_api",
    "LanceFileSession": "file_session",
    "LanceFileStatistics": "reference_api",
    "LanceFileWriter": "reference_api",
    "LancePageMetadata": "reference_api",
    "ListResult": "file_session",
    "Ranges": "page_reading",
    "ReaderResults": "reference_api",
    "RowSelection": "page_reading",
    "RowSet": "page_reading",
    "RowSlice": "page_reading",
    "SharedBytes": "page_reading",
    "SidecarWriter": "blob_sidecar",
    "WrittenFile": "writer",
    "can_read_together": "several_files",
    "checksum_report": "checksums",
    "copy_verified": "checksums",
    "columns_to_append": "copied_columns",
    "columns_to_copy": "copied_columns",
    "copy_array": "arrow_values",
    "page_budget": "writer",
    "read_files_together": "several_files",
    "read_verified": "checksums",
    "reorder": "arrow_values",
    "row_bytes": "page_reading",
    "stable_version": "reference_api",
    "stores_field_alike": "copied_columns",
    "verified_sidecar": "blob_sidecar",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
