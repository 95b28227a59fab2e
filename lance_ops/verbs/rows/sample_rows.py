"""Rows that a preview shows, as text: a few of them, and the first columns, because people read them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.api import LanceDataset
from lance_ops.verbs.contract import Section

__all__ = ["SAMPLE_ROWS", "sample_of", "sample_section"]

SAMPLE_ROWS = 5
_MOST_COLUMNS = 8
_MOST_CHARACTERS = 60


def sample_of(
    data: LanceDataset,
    predicate: str | None,
    title: str,
    values: Mapping[str, str] | None = None,
    *,
    offset: int = 0,
    num_rows: int = SAMPLE_ROWS,
) -> Section:
    """Return the first rows that match, of columns whose values are short, and SQL `values` by their title."""
    columns = [
        field.name
        for field in data.schema
        if not (pt.is_nested(field.type) or pt.is_large_binary(field.type)) and "`" not in field.name
    ]
    shown = {name: f"`{name}`" for name in columns[: max(_MOST_COLUMNS - len(values or ()), 1)]}
    rows = data.to_table({**shown, **(values or {})}, filter=predicate, limit=num_rows, offset=offset)
    return sample_section(title, rows, num_rows)


def sample_section(title: str, rows: pa.Table, num_rows: int = SAMPLE_ROWS) -> Section:
    """Return the first rows of a table."""
    shown = rows.select(rows.schema.names[:_MOST_COLUMNS]).slice(0, num_rows)
    lines = tuple(tuple(_text(value) for value in line.values()) for line in shown.to_pylist())
    return Section(title, tuple(shown.schema.names), lines)


def _text(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
