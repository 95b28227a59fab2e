"""Write measures for people, in the unit that fits."""

from __future__ import annotations

__all__ = ["size_text"]

_STEP = 1024


def size_text(size_bytes: int) -> str:
    """Return a size with a binary unit, such as `1.5 MiB`."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _STEP:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} TiB"
