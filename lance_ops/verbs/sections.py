"""Sections that previews and results of several verbs show: rows as text, changes of columns, the first lines of many.

People read them, so they have a few rows and the first columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.api import LanceDataset
from lance_ops.core.schema import Schema
from lance_ops.verbs.contract import Section

__all__ = [
    "MOST_LINES",
    "MOST_PAIRS",
    "SAMPLE_ROWS",
    "column_changes",
    "sample_of",
    "sample_section",
    "sample_title",
    "short_columns",
    "shortened_section",
]

MOST_LINES = 50
"""How many lines of a section are shown."""

SAMPLE_ROWS = 5
_MOST_COLUMNS = 8
MOST_PAIRS = _MOST_COLUMNS // 2
"""How many columns are shown with their old and their new values."""
_MOST_CHARACTERS = 60


def shortened_section(title: str, header: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> Section:
    """Return a section of the first lines; its title says so if there are more."""
    shown = title if len(lines) <= MOST_LINES else f"{title} (the first {MOST_LINES} of {len(lines):,})"
    return Section(shown, header, tuple(lines[:MOST_LINES]))


def column_changes(before: Schema | None, after: Schema) -> list[tuple[str, ...]]:
    """Return each column with its type and what changes of it, those with a change first."""
    known = {} if before is None else {each.name: str(each.arrow_type) for each in before.fields}
    lines = []
    for each in after.fields:
        kind = str(each.arrow_type)
        change = "new" if each.name not in known else f"{known[each.name]} before" if known[each.name] != kind else ""
        lines.append((each.name, kind, change))
    gone = [(name, kind, "removed") for name, kind in known.items() if name not in after.names]
    return sorted([*lines, *gone], key=lambda line: not line[2])


def sample_of(
    data: LanceDataset,
    predicate: str | None,
    title: str,
    values: Mapping[str, str] | None = None,
    *,
    wanted: Collection[str] = (),
    offset: int = 0,
    num_rows: int = SAMPLE_ROWS,
) -> Section:
    """Return the first rows that match, of columns whose values are short, and SQL `values` by their title.

    The `wanted` columns come before others, as `short_columns` says.
    """
    shown = {name: f"`{name}`" for name in short_columns(data.schema, len(values or ()), wanted)}
    rows = data.to_table({**shown, **(values or {})}, filter=predicate, limit=num_rows, offset=offset)
    return sample_section(title, rows, num_rows)


def short_columns(schema: pa.Schema, num_others: int = 0, wanted: Collection[str] = ()) -> list[str]:
    """Return the first columns whose values are short, the wanted ones before others, as far as there is room.

    `num_others` columns are shown beside them. Nested and large binary columns are left out, also if they are wanted.
    """
    short = [
        field.name
        for field in schema
        if not (pt.is_nested(field.type) or pt.is_large_binary(field.type)) and "`" not in field.name
    ]
    chosen = sorted(short, key=lambda name: name not in wanted)[: max(_MOST_COLUMNS - num_others, 1)]
    return [name for name in short if name in chosen]


def sample_title(title: str, num_rows: int) -> str:
    """Return the title of a sample of these rows; it says so if there are more than are shown."""
    return title if num_rows <= SAMPLE_ROWS else f"{title} (the first {SAMPLE_ROWS} of {num_rows:,})"


def sample_section(title: str, rows: pa.Table, num_rows: int = SAMPLE_ROWS) -> Section:
    """Return the first rows of a table."""
    shown = rows.select(rows.schema.names[:_MOST_COLUMNS]).slice(0, num_rows)
    columns = [[_text(value) for value in _listed(column)] for column in shown.columns]
    return Section(title, tuple(shown.schema.names), tuple(zip(*columns, strict=True)))


def _listed(column: pa.ChunkedArray) -> list[Any]:
    """Return the values; text in place of times that Python cannot hold, and counts of units of such durations."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return list(column.cast(pa.int64() if pt.is_duration(column.type) else pa.string()).to_pylist())


def _text(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
