"""Maintain a dataset: ingest, compact, index, clean up, verify, repair and measure; each verb begins with a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.batch_ledger import (
        BatchHistory,
        IngestedBatch,
        batch_events_after,
        batch_history,
        batch_properties,
        ingested_batches,
        last_numbered_batch,
        tokens_of,
    )

__all__ = [
    "BatchHistory",
    "IngestedBatch",
    "batch_events_after",
    "batch_history",
    "batch_properties",
    "ingested_batches",
    "last_numbered_batch",
    "tokens_of",
]

_MODULES = {
    "BatchHistory": "batch_ledger",
    "IngestedBatch": "batch_ledger",
    "batch_events_after": "batch_ledger",
    "batch_history": "batch_ledger",
    "batch_properties": "batch_ledger",
    "ingested_batches": "batch_ledger",
    "last_numbered_batch": "batch_ledger",
    "tokens_of": "batch_ledger",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
