"""How a scan sorts by one column."""

from __future__ import annotations

from lance_ops.core.records import dataclass

__all__ = ["ColumnOrdering"]


@dataclass(frozen=True)
class ColumnOrdering:
    """A column (or the dotted path of a nested field) to sort by. NaN comes after all numbers."""

    column_name: str
    ascending: bool = True
    nulls_first: bool = False
