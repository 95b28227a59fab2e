"""Draw how measures grew: one small panel for each measure, all over the same points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lance_ops.charts.card import PALETTE, card, text
from lance_ops.core.records import dataclass

__all__ = ["Panel", "trend_chart"]

_PANEL_WIDTH, _PANEL_HEIGHT, _MARGIN = 340, 130, 14
_PLOT_TOP, _PLOT_HEIGHT = 30, 76
_COLUMNS = 2


@dataclass(frozen=True)
class Panel:
    """A measure: its value at each point, None where it is unknown, and its newest value as people read it.

    The axis begins at `floor`, or at the least value if that is lower.
    """

    title: str
    values: Sequence[float | None]
    newest: str = ""
    floor: float = 0.0


def trend_chart(title: str, first: str, last: str, panels: Sequence[Panel]) -> str:
    """Return the panels as an SVG document; `first` and `last` name the ends of the horizontal axis.

    Points stand at equal distances. An unknown value leaves a gap.
    """
    num_rows = -(-len(panels) // _COLUMNS)
    width = _COLUMNS * _PANEL_WIDTH + (_COLUMNS + 1) * _MARGIN
    height = num_rows * (_PANEL_HEIGHT + _MARGIN) + _MARGIN
    return card(width, height, title, _drawn(panels, first, last))


def _drawn(panels: Sequence[Panel], first: str, last: str) -> Iterator[str]:
    for number, panel in enumerate(panels):
        row, column = divmod(number, _COLUMNS)
        x = _MARGIN + column * (_PANEL_WIDTH + _MARGIN)
        y = _MARGIN + row * (_PANEL_HEIGHT + _MARGIN)
        yield f'<g transform="translate({x} {y})">'
        yield from _panel(panel, PALETTE[number % len(PALETTE)], first, last)
        yield "</g>"


def _panel(panel: Panel, color: str, first: str, last: str) -> Iterator[str]:
    bottom = _PLOT_TOP + _PLOT_HEIGHT
    yield text(0, 16, panel.title, size=13)
    yield text(_PANEL_WIDTH, 16, panel.newest, anchor="end", size=13)
    yield f'<path class="grid" d="M0 {_PLOT_TOP}H{_PANEL_WIDTH}M0 {bottom}H{_PANEL_WIDTH}" fill="none"/>'
    yield text(0, bottom + 16, first, faint=True, size=11)
    yield text(_PANEL_WIDTH, bottom + 16, last, anchor="end", faint=True, size=11)
    for line in _lines(panel):
        x, y = line[-1]
        points = " ".join(f"{x:.4g},{y:.4g}" for x, y in line)
        yield f'<polyline class="l{color}" points="{points}" fill="none" stroke-width="2" stroke-linejoin="round"/>'
        yield f'<circle class="{color}" cx="{x:.4g}" cy="{y:.4g}" r="3"/>'


def _lines(panel: Panel) -> Iterator[list[tuple[float, float]]]:
    """Yield the points of each stretch of known values, in pixels of the panel."""
    known = [value for value in panel.values if value is not None]
    low, high = min([panel.floor, *known]), max([panel.floor, *known])
    step = _PANEL_WIDTH / max(len(panel.values) - 1, 1)
    stretch: list[tuple[float, float]] = []
    for number, value in enumerate(panel.values):
        if value is None:
            if stretch:
                yield stretch
            stretch = []
            continue
        share = (value - low) / (high - low) if high > low else 0.0
        stretch.append((number * step, _PLOT_TOP + _PLOT_HEIGHT * (1 - share)))
    if stretch:
        yield stretch
