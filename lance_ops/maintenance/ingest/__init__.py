"""Bring raw files into a table, each batch exactly once: plan, tasks, one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.ingest.by_key import HistoryColumns
    from lance_ops.maintenance.ingest.decoding import RawLimits, TextReading, distinct_names
    from lance_ops.maintenance.ingest.ingest_survey import IngestSurvey, SurveyedFile, survey_ingest
    from lance_ops.maintenance.ingest.ingestion import ingest
    from lance_ops.maintenance.ingest.planning import (
        BadBatches,
        ChangedBatches,
        IngestMode,
        IngestOptions,
        plan_ingest,
    )
    from lance_ops.maintenance.ingest.raw_files import IngestBatch, RawFile, RawReader, RawReading, found_file
    from lance_ops.maintenance.ingest.raw_locations import (
        ListedFile,
        StatedFile,
        batch_token,
        content_token,
        etag_of,
        failures_of_store,
        local_path,
        remote_file_system,
    )
    from lance_ops.maintenance.ingest.raw_names import RAW_ENDINGS, is_text_file, printable, raw_format, why_not_literal
    from lance_ops.maintenance.ingest.raw_rows import ExtraColumns, MissingColumns, RowFitting, plain_schema
    from lance_ops.maintenance.ingest.raw_schemas import unified_raw_schema
    from lance_ops.maintenance.ingest.running import IngestResult

__all__ = [
    "RAW_ENDINGS",
    "BadBatches",
    "ChangedBatches",
    "ExtraColumns",
    "HistoryColumns",
    "IngestBatch",
    "IngestMode",
    "IngestOptions",
    "IngestResult",
    "IngestSurvey",
    "ListedFile",
    "MissingColumns",
    "RawFile",
    "RawLimits",
    "RawReader",
    "RawReading",
    "RowFitting",
    "StatedFile",
    "SurveyedFile",
    "TextReading",
    "batch_token",
    "content_token",
    "distinct_names",
    "etag_of",
    "failures_of_store",
    "found_file",
    "ingest",
    "is_text_file",
    "local_path",
    "plain_schema",
    "plan_ingest",
    "printable",
    "raw_format",
    "remote_file_system",
    "survey_ingest",
    "unified_raw_schema",
    "why_not_literal",
]

_MODULES = {
    "BadBatches": "planning",
    "ChangedBatches": "planning",
    "ExtraColumns": "raw_rows",
    "HistoryColumns": "by_key",
    "IngestBatch": "raw_files",
    "IngestMode": "planning",
    "IngestOptions": "planning",
    "IngestResult": "running",
    "IngestSurvey": "ingest_survey",
    "ListedFile": "raw_locations",
    "MissingColumns": "raw_rows",
    "RawFile": "raw_files",
    "RawLimits": "decoding",
    "RawReader": "raw_files",
    "RawReading": "raw_files",
    "RowFitting": "raw_rows",
    "StatedFile": "raw_locations",
    "SurveyedFile": "ingest_survey",
    "TextReading": "decoding",
    "batch_token": "raw_locations",
    "content_token": "raw_locations",
    "distinct_names": "decoding",
    "etag_of": "raw_locations",
    "failures_of_store": "raw_locations",
    "found_file": "raw_files",
    "ingest": "ingestion",
    "local_path": "raw_locations",
    "plain_schema": "raw_rows",
    "plan_ingest": "planning",
    "printable": "raw_names",
    "raw_format": "raw_names",
    "RAW_ENDINGS": "raw_names",
    "is_text_file": "raw_names",
    "remote_file_system": "raw_locations",
    "survey_ingest": "ingest_survey",
    "unified_raw_schema": "raw_schemas",
    "why_not_literal": "raw_names",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
