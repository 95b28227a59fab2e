"""Format tables, lists and sizes as Markdown for metadata that Dagster renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_ops.charts import size_text

__all__ = ["named", "size_text", "table"]


def named(texts: Sequence[str], most: int) -> str:
    """Return the first `most` texts, and how many others there are, such as `a, b and 3 more`."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table. Bars and line breaks in a cell are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
