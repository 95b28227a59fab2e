"""Append raw files to a table, each batch exactly once: plan, tasks, one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
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

_MODULES = {
    "IngestBatch": "ingestion",
    "IngestOptions": "ingestion",
    "IngestResult": "ingestion",
    "ListedFile": "raw_locations",
    "RawFile": "ingestion",
    "RawLimits": "raw_decoding",
    "RawReading": "raw_files",
    "failures_of_store": "raw_locations",
    "ingest": "ingestion",
    "local_path": "raw_locations",
    "printable": "raw_names",
    "remote_file_system": "raw_locations",
    "unified_raw_schema": "raw_files",
    "why_not_literal": "raw_names",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
