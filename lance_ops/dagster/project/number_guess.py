"""Guess which characters numbers have before their fraction and between their thousands, from the cells of columns.

`1,234` and `1.234` may mean two things, and `123 456` may be a code. A separator of thousands is guessed only from a
column of numbers that cannot be read in another way: some have a fraction behind it, or they differ in their length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["NumberForm", "is_number", "number_form"]

_NUMBER = re.compile(r"[+-]?\d+(?:(?P<sign>[.,])(?P<digits>\d+))?")
_GROUPED = re.compile(
    r"[+-]?[1-9]\d{0,2}(?P<group>[.,' \u2019\u00a0\u202f])\d{3}(?:(?P=group)\d{3})*"
    r"(?:(?!(?P=group))(?P<point>[.,])\d+)?"
)
_THOUSANDTHS = 3
"""So many digits behind a sign may be a fraction, or a group of the whole part."""


class NumberForm(NamedTuple):
    """What the numbers of a file show; None where they do not tell.

    In `comma_columns` a comma may stand before a fraction or between thousands. `doubts` are those of single columns.
    """

    point: str | None
    thousands: str | None
    comma_columns: tuple[str, ...]
    doubts: tuple[str, ...]


class _Signs(NamedTuple):
    """What one column shows: signs before fractions, between thousands, and those that may be either."""

    points: frozenset[str] = frozenset()
    thousands: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()


def is_number(cell: str) -> bool:
    """Return whether a cell is a number without separators of thousands."""
    return _NUMBER.fullmatch(cell) is not None


def number_form(columns: Iterable[tuple[str, Sequence[str]]]) -> NumberForm:
    """Return what the columns show, given their names and their cells that are not empty."""
    found = [(name, _signs(cells)) for name, cells in columns]
    points = frozenset[str]().union(*(signs.points for _, signs in found))
    thousands = frozenset[str]().union(*(signs.thousands for _, signs in found))
    if "." not in thousands and any("." in signs.open for _, signs in found):
        points |= {"."}
    doubts = [
        f"{name}: does {json.dumps(sign)} stand between the thousands of its numbers? If so, set text.thousands: "
        f"{json.dumps(sign)}"
        for name, signs in found
        for sign in sorted(signs.doubtful)
    ]
    if len(points) > 1:
        doubts.append("Some numbers have a comma before their fraction, some a point: the former stay text")
    if len(thousands) > 1 or thousands & points:
        doubts.append(f"Numbers have several separators of thousands, or of fractions: {_shown(thousands | points)}")
        thousands = frozenset()
    point = min(points, key=".,".index, default="," if "." in thousands else None)
    commas = tuple(name for name, signs in found if "," in signs.open)
    return NumberForm(point, min(thousands, default=None), commas, tuple(doubts))


def _signs(cells: Sequence[str]) -> _Signs:
    plain = [found for cell in cells if (found := _NUMBER.fullmatch(cell))]
    grouped = [found for cell in cells if not is_number(cell) and (found := _GROUPED.fullmatch(cell))]
    lengths = {sign: {len(each["digits"]) for each in plain if each["sign"] == sign} for sign in ".,"}
    if grouped and len(plain) + len(grouped) == len(cells):
        groups = frozenset(each["group"] for each in grouped)
        points = frozenset(each["point"] for each in grouped if each["point"])
        points |= {sign for sign in lengths if lengths[sign] and sign not in groups}
        fits = (
            len(groups) == 1
            and not groups & points
            and all(lengths.get(each, set()) <= {_THOUSANDTHS} for each in groups)
        )
        tells = bool(points) or len({len(cell) for cell in cells}) > 1
        return _Signs(points, groups) if fits and tells else _Signs(doubtful=groups)
    if lengths[","] and (lengths["."] or len(plain) < len(cells)):
        lengths[","] = set()  # a column with other cells stays text
    return _Signs(
        frozenset(sign for sign in lengths if lengths[sign] - {_THOUSANDTHS}),
        open=frozenset(sign for sign in lengths if lengths[sign] == {_THOUSANDTHS}),
    )


def _shown(signs: Iterable[str]) -> str:
    return ", ".join(map(json.dumps, sorted(signs)))
