"""Data files, read and written page by page.

`LanceFileReader` and `LanceFileWriter` are the reference implementation's names; `FileReader` and `FileWriter`, beneath
them, work on a store and know fields by their ids, as datasets need.
"""

from lance_ops.file.arrays import own_copy
from lance_ops.file.budget import row_bytes
from lance_ops.file.joined import JoinedFile, can_be_joined, read_joined
from lance_ops.file.lance_file import (
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
from lance_ops.file.order import reorder
from lance_ops.file.reader import FileReader
from lance_ops.file.rows import Rows, RowSet, RowSlice
from lance_ops.file.source import FileSource, Ranges
from lance_ops.file.v0_1 import Dictionaries
from lance_ops.file.writer import FileWriter, WrittenFile, page_budget

__all__ = [
    "Dictionaries",
    "FileReader",
    "FileSource",
    "FileWriter",
    "JoinedFile",
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "Ranges",
    "ReaderResults",
    "RowSet",
    "RowSlice",
    "Rows",
    "WrittenFile",
    "can_be_joined",
    "own_copy",
    "page_budget",
    "read_joined",
    "reorder",
    "row_bytes",
    "stable_version",
]
