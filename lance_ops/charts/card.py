"""The frame of a chart: a rounded card with colours of its own, so it is legible on any page.

An SVG in an `img` cannot see the page around it. The card is dark if the reader's system prefers dark.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

__all__ = ["PALETTE", "card", "escaped", "image_address", "text"]

PALETTE = ("a", "b", "c", "d", "e", "f")
"""Classes of colours that differ from each other and from the ink, also for readers who see few colours."""

_LIGHT = ("#2563eb", "#d97706", "#dc2626", "#7c3aed", "#0d9488", "#6b7280")
_DARK = ("#60a5fa", "#fbbf24", "#f87171", "#a78bfa", "#2dd4bf", "#9ca3af")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def card(width: int, height: int, title: str, body: Iterable[str]) -> str:
    """Return an SVG document of this size in pixels; `title` is what a screen reader says."""
    light = _colors("#ffffff", "#1f2937", "#d1d5db", _LIGHT)
    dark = _colors("#111827", "#e5e7eb", "#374151", _DARK)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="system-ui, sans-serif" font-size="12"><title>{escaped(title)}</title>'
        f"<style>{light}@media (prefers-color-scheme: dark){{{dark}}}</style>"
        f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>{"".join(body)}</svg>'
    )


def text(x: float, y: float, words: str, *, anchor: str = "start", faint: bool = False, size: int = 12) -> str:
    """Return words whose baseline starts, is centred or ends at a point."""
    style = ' opacity="0.65"' if faint else ""
    return (
        f'<text class="ink" x="{x:.4g}" y="{y:.4g}" font-size="{size}" text-anchor="{anchor}"{style}>'
        f"{escaped(words)}</text>"
    )


def image_address(svg: str) -> str:
    """Return an address that holds the whole image, for the `src` of an `img` or for Markdown."""
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"


def _colors(ground: str, ink: str, faint: str, palette: Sequence[str]) -> str:
    named = "".join(
        f".{name}{{fill:{color}}}.l{name}{{stroke:{color}}}" for name, color in zip(PALETTE, palette, strict=True)
    )
    return f".card{{fill:{ground};stroke:{faint}}}.ink{{fill:{ink}}}.grid{{stroke:{faint}}}{named}"


def escaped(words: str) -> str:
    """Return words as character data of XML; characters that XML does not allow are replaced."""
    return escape(_NOT_XML.sub("�", words))
