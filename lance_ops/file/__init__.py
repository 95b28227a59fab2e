"""Data files, read and written page by page.

`LanceFileReader` and `LanceFileWriter` are the reference implementation's names; `FileReader` and `FileWriter`, beneath
them, work on a store and know fields by their ids, as datasets need.
"""

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
from lance_ops.file.reader import FileReader
from lance_ops.file.v0_1.dictionaries import Dictionaries
from lance_ops.file.writer import FileWriter, WrittenFile, page_budget

__all__ = [
    "Dictionaries",
    "FileReader",
    "FileWriter",
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "ReaderResults",
    "WrittenFile",
    "page_budget",
    "stable_version",
]
