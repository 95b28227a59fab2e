"""Format Markdown tables and sizes for metadata that Dagster renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_ops.charts import size_text

__all__ = ["size_text", "table"]


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table. Bars and line breaks in a cell are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
