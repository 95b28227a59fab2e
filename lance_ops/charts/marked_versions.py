"""Draw versions in their order: a dot for each, coloured by its kind, with the names of tags and branches at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lance_ops.charts.card import PALETTE, card, escaped, text
from lance_ops.core.records import dataclass

__all__ = ["Mark", "version_chart"]

_WIDTH, _MARGIN, _LINE = 708, 24, 15
_LABEL_CHARACTERS = 24


@dataclass(frozen=True)
class Mark:
    """A version: `kind` chooses its colour and stands in the legend; `note` is shown when it is pointed at."""

    version: int
    kind: str
    note: str = ""
    tags: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()


def version_chart(title: str, marks: Sequence[Mark], kinds: Sequence[str]) -> str:
    """Return the versions as an SVG document, the oldest at the left.

    `kinds` are all kinds that a mark may have, at most as many as `PALETTE` has colours: a kind keeps its colour from
    chart to chart. The legend names those that occur.
    """
    num_above = max((len(mark.tags) for mark in marks), default=0)
    num_below = max((len(mark.branches) for mark in marks), default=0)
    axis = 34 + num_above * _LINE
    height = axis + 62 + num_below * _LINE
    return card(_WIDTH, height, title, [*_dots(marks, kinds, axis), *_legend(marks, kinds, height - 14)])


def _dots(marks: Sequence[Mark], kinds: Sequence[str], axis: int) -> Iterator[str]:
    yield f'<path class="grid" d="M{_MARGIN} {axis}H{_WIDTH - _MARGIN}" stroke-width="2"/>'
    step = (_WIDTH - 2 * _MARGIN) / max(len(marks) - 1, 1)
    for number, mark in enumerate(marks):
        x = _MARGIN + number * step
        anchor = "start" if x < _WIDTH / 3 else "end" if x > _WIDTH * 2 / 3 else "middle"
        color, note = PALETTE[kinds.index(mark.kind)], escaped(mark.note)
        yield f'<circle class="{color}" cx="{x:.4g}" cy="{axis}" r="6"><title>{note}</title></circle>'
        for line, tag in enumerate(mark.tags):
            yield text(x, axis - 14 - line * _LINE, f"tag {_short(tag)}", anchor=anchor, size=11)
        for line, branch in enumerate(mark.branches):
            yield text(x, axis + 34 + line * _LINE, f"branch {_short(branch)}", anchor=anchor, size=11)
    if marks:
        yield text(_MARGIN, axis + 20, f"version {marks[0].version}", faint=True, size=11)
    if len(marks) > 1:
        yield text(_WIDTH - _MARGIN, axis + 20, f"version {marks[-1].version}", anchor="end", faint=True, size=11)


def _legend(marks: Sequence[Mark], kinds: Sequence[str], y: int) -> Iterator[str]:
    x, present = _MARGIN, {mark.kind for mark in marks}
    for kind in filter(present.__contains__, kinds):
        yield f'<circle class="{PALETTE[kinds.index(kind)]}" cx="{x}" cy="{y - 4}" r="5"/>'
        yield text(x + 10, y, kind)
        x += 30 + 7 * len(kind)


def _short(name: str) -> str:
    return name if len(name) <= _LABEL_CHARACTERS else f"{name[: _LABEL_CHARACTERS - 1]}…"
