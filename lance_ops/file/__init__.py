"""Read and write single data files of every file version.

`LanceFileReader` and `LanceFileWriter` are the reference implementation's API. They use `FileReader` and `FileWriter`,
which datasets use directly: these work on a store and know fields by their ids.
"""

from lance_ops.encodings import MAX_RATIO
from lance_ops.file.alike_files import WHOLE_FILE_BYTES, AlikeFiles
from lance_ops.file.arrow_values import copy_array, reorder
from lance_ops.file.blob_sidecar import SidecarWriter, verified_sidecar
from lance_ops.file.checksums import checksum_report, read_verified
from lance_ops.file.copied_columns import stores_field_alike
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
    "copy_array",
    "page_budget",
    "read_files_together",
    "read_verified",
    "reorder",
    "row_bytes",
    "stable_version",
    "stores_field_alike",
    "verified_sidecar",
]
