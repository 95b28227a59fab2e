"""Append raw files to a table, each batch exactly once: plan, tasks, one commit."""

from lance_ops.maintenance.ingest.ingestion import IngestBatch, IngestOptions, IngestResult, RawFile, ingest
from lance_ops.maintenance.ingest.raw_decoding import RawLimits
from lance_ops.maintenance.ingest.raw_files import RawReading, unified_raw_schema
from lance_ops.maintenance.ingest.raw_locations import (
    ListedFile,
    failures_of_store,
    local_path,
    remote_file_system,
)
from lance_ops.maintenance.ingest.raw_names import printable, why_not_literal

__all__ = [
    "IngestBatch",
    "IngestOptions",
    "IngestResult",
    "ListedFile",
    "RawFile",
    "RawLimits",
    "RawReading",
    "failures_of_store",
    "ingest",
    "local_path",
    "printable",
    "remote_file_system",
    "unified_raw_schema",
    "why_not_literal",
]
