"""Decide what an ingestion does: which batches are new and can be read, the schema, and tasks of raw files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.ingest.planning.file_parts import FilePart
    from lance_ops.maintenance.ingest.planning.ingest_options import (
        BadBatches,
        ChangedBatches,
        IngestMode,
        IngestOptions,
    )
    from lance_ops.maintenance.ingest.planning.ingest_plan import IngestPlan, IngestTask, plan_ingest
    from lance_ops.maintenance.ingest.planning.readable_batches import batches_not_as_listed, plan_readable

__all__ = [
    "BadBatches",
    "ChangedBatches",
    "FilePart",
    "IngestMode",
    "IngestOptions",
    "IngestPlan",
    "IngestTask",
    "batches_not_as_listed",
    "plan_ingest",
    "plan_readable",
]

_MODULES = {
    "BadBatches": "ingest_options",
    "ChangedBatches": "ingest_options",
    "FilePart": "file_parts",
    "IngestMode": "ingest_options",
    "IngestOptions": "ingest_options",
    "IngestPlan": "ingest_plan",
    "IngestTask": "ingest_plan",
    "batches_not_as_listed": "readable_batches",
    "plan_ingest": "ingest_plan",
    "plan_readable": "readable_batches",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
