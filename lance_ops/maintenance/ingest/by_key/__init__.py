"""Bring batches into a table by key: as updates and inserts, or as a history of each key's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.ingest.by_key.history_columns import HistoryColumns
    from lance_ops.maintenance.ingest.by_key.staged_merge import KeyedBatches, merge_batches

__all__ = ["HistoryColumns", "KeyedBatches", "merge_batches"]

_MODULES = {
    "HistoryColumns": "history_columns",
    "KeyedBatches": "staged_merge",
    "merge_batches": "staged_merge",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
