"""Append raw files to a table, each batch exactly once: plan, tasks, one commit."""

from lance_ops.maintenance.ingest.ingestion import IngestBatch, IngestOptions, IngestResult, RawFile, ingest
from lance_ops.maintenance.ingest.raw_files import unified_raw_schema

__all__ = [
    "IngestBatch",
    "IngestOptions",
    "IngestResult",
    "RawFile",
    "ingest",
    "unified_raw_schema",
]
