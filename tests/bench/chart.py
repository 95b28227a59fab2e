"""Draw the chart: a panel for each operation, a line for each case, a mark for each version, on a logarithmic axis.

Right of the middle line ours is better. A ratio beyond the axis is drawn at its edge, as a triangle that points out;
a cell without a ratio is a cross in the margin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

from tests.bench.results import OPERATIONS, OWN_FILES, PARQUET, VERSIONS, Cell, Rival, Run, geometric_mean
from tests.bench.svg import FAINT, INK, document, text

__all__ = ["chart"]

_COLORS = {"2.0": "#b07d2b", "2.1": "#2a9d8f", "2.2": "#1d4e89"}
_BAND = "#f5f7fa"
_LABELS, _PANEL, _GAP, _ROW, _HEAD = 190, 200, 22, 26, 62
_LIMIT = 16.0  # the axis spans 1/16 to 16
_TICKS = {1 / 16: "1/16", 1 / 4: "1/4", 1.0: "1", 4.0: "4", 16.0: "16"}


def chart(run: Run) -> str:
    """Return the run as an SVG document."""
    cases = list(dict.fromkeys(cell.case for cell in run.cells))
    rivals = (OWN_FILES, PARQUET)
    block = _HEAD + (len(cases) + 1) * _ROW + 44
    width = _LABELS + len(OPERATIONS) * (_PANEL + _GAP)
    height = 76 + len(rivals) * block
    body = [
        text(
            12, 26, "lance_ops against the reference and Parquet: theirs / ours, right of 1 is better for ours", size=17
        ),
        text(
            12,
            48,
            ", ".join(str(run.setting[name]) for name in ("date", "machine", "neighbours") if name in run.setting),
        ),
        *_legend(width),
    ]
    for number, rival in enumerate(rivals):
        body += _block(run, rival, cases, 76 + number * block)
    return document(width, height, body)


def _legend(width: int) -> Iterator[str]:
    x = width - 330
    for version, color in _COLORS.items():
        yield f'<circle cx="{x}" cy="44" r="5" fill="{color}"/>' + text(x + 9, 48, version)
        x += 52
    yield _cross(x + 4, 44, "#999999") + text(x + 14, 48, "no ratio (unsupported)")


def _block(run: Run, rival: Rival, cases: list[str], top: int) -> Iterator[str]:
    yield text(12, top + 22, f"Against {rival.title}", size=15, weight="bold")
    first = top + _HEAD
    for row in range(0, len(cases) + 1, 2):
        yield f'<rect x="0" y="{first + row * _ROW}" width="100%" height="{_ROW}" fill="{_BAND}"/>'
    for row, case in enumerate([*cases, "geometric mean"]):
        bold = "bold" if row == len(cases) else "normal"
        yield text(_LABELS - 14, first + row * _ROW + 18, case.replace("_", " "), anchor="end", weight=bold)
    for number, operation in enumerate(OPERATIONS):
        left = _LABELS + number * (_PANEL + _GAP)
        yield text(left + _PANEL / 2, first - 12, operation, anchor="middle", weight="bold")
        yield from _axis(left, first, first + (len(cases) + 1) * _ROW)
        for row, case in enumerate(cases):
            for offset, version in enumerate(VERSIONS):
                cell = run.cell(case, version, operation)
                if cell is not None:
                    yield _mark(cell.ratio(rival), left, first + row * _ROW + 7 + 6 * offset, version, cell)
        for offset, version in enumerate(VERSIONS):
            mean = geometric_mean(run.ratios(rival, operation, version))
            if mean is not None:
                yield _mark(mean, left, first + len(cases) * _ROW + 7 + 6 * offset, version)


def _axis(left: float, top: float, bottom: float) -> Iterator[str]:
    for value, label in _TICKS.items():
        x = left + _position(value)
        color, width = (INK, 1.2) if value == 1 else (FAINT, 1)
        yield f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{color}" stroke-width="{width}"/>'
        yield text(x, bottom + 16, label, anchor="middle", size=11)


def _mark(ratio: float | None, left: float, y: float, version: str, cell: Cell | None = None) -> str:
    color = _COLORS[version]
    what = f"{cell.operation} of {cell.case} {version}" if cell else f"geometric mean {version}"
    if ratio is None:
        return _cross(left - 8, y, color, f"{what}: no ratio")
    x = left + _position(ratio)
    title = f"<title>{escape(f'{what}: {ratio:.2f}')}</title>"
    if 1 / _LIMIT <= ratio <= _LIMIT:
        return f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{color}" fill-opacity="0.85">{title}</circle>'
    out = 6 if ratio > 1 else -6
    return f'<path d="M{x:.1f} {y - 4} L{x + out:.1f} {y} L{x:.1f} {y + 4} Z" fill="{color}">{title}</path>'


def _position(ratio: float) -> float:
    clipped = min(max(ratio, 1 / _LIMIT), _LIMIT)
    return _PANEL / 2 * (1 + math.log(clipped) / math.log(_LIMIT))


def _cross(x: float, y: float, color: str, title: str = "") -> str:
    return (
        f'<path d="M{x - 3} {y - 3} L{x + 3} {y + 3} M{x - 3} {y + 3} L{x + 3} {y - 3}" stroke="{color}" '
        f'stroke-width="1.5"><title>{escape(title)}</title></path>'
    )
