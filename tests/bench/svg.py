"""Text and the frame of a chart, as SVG."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

__all__ = ["FAINT", "INK", "document", "text"]

INK, FAINT = "#222222", "#d9d9d9"


def document(width: int, height: int, body: Iterable[str]) -> str:
    """Return a document of this size, in pixels, with `body` on white."""
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                f'height="{height}" font-family="system-ui, sans-serif" font-size="13">'
            ),
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def text(x: float, y: float, words: str, *, size: int = 13, anchor: str = "start", weight: str = "normal") -> str:
    """Return words whose baseline starts, is centred or ends at a point."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="{INK}">{escape(words)}</text>'
    )
