"""Parse a user's filter against a snapshot's columns and the row columns that a scan can add."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.predicate import Predicate, parse_filter
from lance_ops.reading.row_columns import ROW_COLUMNS, row_field
from lance_ops.snapshot import Snapshot

__all__ = ["UserFilter", "bind_filter", "schema_with_row_columns"]

UserFilter: TypeAlias = str | pc.Expression | Predicate
"""SQL text, a `pyarrow.compute` expression, or a predicate tree."""


def bind_filter(snapshot: Snapshot, given: UserFilter, *, whatever_arrow_can: bool = False) -> Predicate:
    """Return the predicate; raise `InvalidFilter` or `UnsupportedFeature` as `parse_filter` does.

    `whatever_arrow_can` is for scans, which need no predicate that can be written down.
    """
    return parse_filter(given, schema_with_row_columns(snapshot), whatever_arrow_can=whatever_arrow_can)


def schema_with_row_columns(snapshot: Snapshot) -> pa.Schema:
    """Return the columns that a filter may name: the table's columns and the row columns."""
    return pa.schema([*snapshot.schema.to_arrow_storage(), *map(row_field, ROW_COLUMNS)])
