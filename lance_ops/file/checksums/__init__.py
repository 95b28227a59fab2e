"""Checksums of the blocks of a file or blob sidecar: written with the file, and verified by its readers."""

from lance_ops.file.checksums.block_checks import BlockChecks
from lance_ops.file.checksums.block_table import BLOCK_BYTES, Blocks, BlockTable, find_table
from lance_ops.file.checksums.checksum_writer import ChecksumWriter
from lance_ops.file.checksums.comparison import checksum_report, read_verified

__all__ = [
    "BLOCK_BYTES",
    "BlockChecks",
    "BlockTable",
    "Blocks",
    "ChecksumWriter",
    "checksum_report",
    "find_table",
    "read_verified",
]
