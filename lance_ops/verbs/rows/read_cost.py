"""Estimate what it costs to find rows: the bytes of the columns that are read for it."""

from __future__ import annotations

from collections.abc import Sequence

from lance_ops.api import LanceDataset
from lance_ops.reading import ROW_COLUMNS, bind_filter
from lance_ops.snapshot import projected_sizes

__all__ = ["bytes_of_columns", "bytes_of_predicate"]


def bytes_of_predicate(data: LanceDataset, predicate: str | None) -> int:
    """Return about how many bytes a scan for a predicate reads; an index may save some of them."""
    return 0 if predicate is None else bytes_of_columns(data, bind_filter(data.snapshot, predicate).columns())


def bytes_of_columns(data: LanceDataset, columns: Sequence[str]) -> int:
    """Return about how many bytes these columns have in all fragments; row columns such as _rowid have none."""
    snapshot = data.snapshot
    stored = [name for name in columns if name not in ROW_COLUMNS]
    if not stored or not snapshot.fragments:
        return 0
    return sum(projected_sizes(snapshot, snapshot.fragments, snapshot.schema.project(stored)).values())
