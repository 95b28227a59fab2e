"""The options of a scan, its columns, and the scanner that runs it, under the reference's names."""

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
