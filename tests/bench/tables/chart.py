"""Draw the chart: a panel for each verb, a line for each contender, time against size, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape

from tests.bench.results import OWN_FILES, Run
from tests.bench.svg import FAINT, INK, document, text
from tests.bench.tables.growth import Line, lines_of

__all__ = ["chart"]

_COLORS = {"ours": "#1d4e89", "pylance": "#b07d2b"}
_DELETED = "5 4"
"""The dashes of lines whose tables have deleted rows."""
_IN_A_ROW, _WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _GAP = 5, 210, 150, 46, 30, 40, 16


def chart(run: Run) -> str:
    """Return the run as an SVG document."""
    lines = lines_of(cell for cell in run.cells if cell.ratio(OWN_FILES) is not None)
    body = [text(12, 26, "Milliseconds against fragments, columns and versions: lower is better", size=17)]
    body.append(
        text(12, 48, ", ".join(run.setting[name] for name in ("date", "machine", "neighbours") if name in run.setting))
    )
    width = _IN_A_ROW * (_LEFT + _WIDTH + _GAP)
    body += _legend(width)
    top = 70
    for axis, its in groupby(lines, key=lambda line: line.case.table.axis):
        body.append(text(12, top + 20, axis, size=15, weight="bold"))
        top += 26
        panels: dict[str, list[Line]] = {}
        for line in its:
            panels.setdefault(line.case.verb.name, []).append(line)
        for number, (verb, of_verb) in enumerate(panels.items()):
            row, column = divmod(number, _IN_A_ROW)
            left = _LEFT + column * (_LEFT + _WIDTH + _GAP)
            body += _panel(verb, of_verb, left, top + row * (_TOP + _HEIGHT + _BOTTOM) + _TOP)
        top += -(-len(panels) // _IN_A_ROW) * (_TOP + _HEIGHT + _BOTTOM)
    return document(width, top + 10, body)


def _legend(width: int) -> Iterator[str]:
    x = width - 420
    for subject, color in _COLORS.items():
        yield f'<line x1="{x}" y1="44" x2="{x + 24}" y2="44" stroke="{color}" stroke-width="2"/>'
        yield text(x + 30, 48, subject)
        x += 110
    yield f'<line x1="{x}" y1="44" x2="{x + 24}" y2="44" stroke="{INK}" stroke-dasharray="{_DELETED}"/>'
    yield text(x + 30, 48, "1% of the rows deleted")


def _panel(verb: str, lines: Sequence[Line], left: float, top: float) -> Iterator[str]:
    sizes = sorted({point.size for line in lines for point in line.points})
    times = [1e3 * point.seconds(subject) for line in lines for point in line.points for subject in _COLORS]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    high = max(high, low + 1)

    def x_of(size: int) -> float:
        return left + _WIDTH * math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])

    def y_of(milliseconds: float) -> float:
        return top + _HEIGHT * (high - math.log10(milliseconds)) / (high - low)

    yield text(left + _WIDTH / 2, top - 10, verb.replace("_", " "), anchor="middle", weight="bold")
    for power in range(low, high + 1):
        y = y_of(10.0**power)
        yield f'<line x1="{left}" y1="{y:.1f}" x2="{left + _WIDTH}" y2="{y:.1f}" stroke="{FAINT}"/>'
        yield text(left - 6, y + 4, f"{10.0**power:g}", anchor="end", size=11)
    for size in sizes:
        yield text(x_of(size), top + _HEIGHT + 16, f"{size:,}", anchor="middle", size=11)
    for line in lines:
        dashes = f' stroke-dasharray="{_DELETED}"' if line.case.table.deleted else ""
        for subject, color in _COLORS.items():
            places = [(x_of(point.size), y_of(1e3 * point.seconds(subject)), point) for point in line.points]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
            yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{dashes}/>'
            for x, y, point in places:
                title = escape(f"{point.cell.case}, {subject}: {1e3 * point.seconds(subject):.2f} ms")
                yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"><title>{title}</title></circle>'
