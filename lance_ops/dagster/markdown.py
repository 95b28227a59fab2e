"""Format Markdown tables and sizes for metadata that Dagster renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["size_text", "table"]

_STEP = 1024


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table. Bars and line breaks in a cell are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def size_text(size_bytes: int) -> str:
    """Return a size with a unit, for people."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _STEP:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} TiB"


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
