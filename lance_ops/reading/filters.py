"""Parse a user's filter against a snapshot's columns and the row columns that a scan can add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core import predicate
from lance_ops.core.predicate import Predicate
from lance_ops.reading.row_columns import ROW_COLUMNS, SELECTABLE_ROW_COLUMNS, row_field
from lance_ops.snapshot import Snapshot

__all__ = ["UserFilter", "bind_filter", "schema_with_row_columns"]

UserFilter: TypeAlias = str | pc.Expression | Predicate
"""SQL text, a `pyarrow.compute` expression, or a predicate tree."""


def bind_filter(snapshot: Snapshot, given: UserFilter, *, of_scan: bool = False) -> Predicate:
    """Return the predicate; raise `InvalidFilter` or `UnsupportedFeature` as `parse_filter` does.

    The filter of a scan may be whatever pyarrow evaluates, since it need not be written down, and may name the rows'
    positions.
    """
    names = SELECTABLE_ROW_COLUMNS if of_scan else ROW_COLUMNS
    return predicate.parse_filter(given, schema_with_row_columns(snapshot, names), whatever_arrow_can=of_scan)


def schema_with_row_columns(snapshot: Snapshot, row_columns: Sequence[str] = ROW_COLUMNS) -> pa.Schema:
    """Return the columns that a filter may name: the table's columns and row columns."""
    return pa.schema([*snapshot.schema.to_arrow_storage(), *map(row_field, row_columns)])
