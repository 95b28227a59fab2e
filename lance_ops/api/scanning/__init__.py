"""The options of a scan, its columns, and the scanner that runs it, under the reference's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.api.scanning.blob_file import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
    from lance_ops.api.scanning.data_frames import LAZY
    from lance_ops.api.scanning.projection import Columns, Projection, project
    from lance_ops.api.scanning.scan_options import (
        Filter,
        OrderBy,
        ScanOptions,
        arguments_of,
        make_scanner,
        refuse,
        scan_request,
    )
    from lance_ops.api.scanning.scan_statistics import ScanStatistics
    from lance_ops.api.scanning.scanner import BatchSize, LanceScanner

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "LAZY",
    "BatchSize",
    "BlobFile",
    "Columns",
    "Filter",
    "LanceScanner",
    "OrderBy",
    "Projection",
    "ScanOptions",
    "ScanStatistics",
    "arguments_of",
    "make_scanner",
    "project",
    "refuse",
    "scan_request",
]

_MODULES = {
    "DEFAULT_BLOB_BUFFER_SIZE": "blob_file",
    "LAZY": "data_frames",
    "BatchSize": "scanner",
    "BlobFile": "blob_file",
    "Columns": "projection",
    "Filter": "scan_options",
    "LanceScanner": "scanner",
    "OrderBy": "scan_options",
    "Projection": "projection",
    "ScanOptions": "scan_options",
    "ScanStatistics": "scan_statistics",
    "arguments_of": "scan_options",
    "make_scanner": "scan_options",
    "project": "projection",
    "refuse": "scan_options",
    "scan_request": "scan_options",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
