"""Checksums of the blocks of a file or blob sidecar: written with the file, and verified by its readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.file.checksums.block_checks import BlockChecks
    from lance_ops.file.checksums.block_table import BLOCK_BYTES, Blocks, BlockTable, find_table
    from lance_ops.file.checksums.checksum_writer import ChecksumWriter
    from lance_ops.file.checksums.comparison import checksum_report, copy_verified, read_verified

__all__ = [
    "BLOCK_BYTES",
    "BlockChecks",
    "BlockTable",
    "Blocks",
    "ChecksumWriter",
    "checksum_report",
    "copy_verified",
    "find_table",
    "read_verified",
]

_MODULES = {
    "BLOCK_BYTES": "block_table",
    "BlockChecks": "block_checks",
    "BlockTable": "block_table",
    "Blocks": "block_table",
    "ChecksumWriter": "checksum_writer",
    "checksum_report": "comparison",
    "copy_verified": "comparison",
    "find_table": "block_table",
    "read_verified": "comparison",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
