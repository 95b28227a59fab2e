"""How the time of a verb grows with its table: the cells of one verb, ordered by size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tests.bench.results import Cell
from tests.bench.tables.cases import Case, case_named
from tests.bench.tables.tables import COLD

__all__ = ["Line", "Point", "lines_of"]


@dataclass(frozen=True)
class Point:
    """The cell of one size, measured for both contenders."""

    size: int
    cell: Cell

    def seconds(self, subject: str) -> float:
        """Return the median of a contender's wall times."""
        seconds = self.cell.typical(subject)
        assert seconds is not None, self.cell.case
        return seconds


@dataclass(frozen=True)
class Line:
    """A verb on tables that differ in their size only; `case` is that of size 0."""

    case: Case
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        """The name of the cases, without their size."""
        return self.case.name.replace("/0/", "/", 1)

    def slope(self, subject: str) -> float:
        """Return the seconds that one more of the size costs, between the smallest and the largest."""
        first, last = self.points[0], self.points[-1]
        return (last.seconds(subject) - first.seconds(subject)) / (last.size - first.size)


def lines_of(cells: Iterable[Cell]) -> tuple[Line, ...]:
    """Return a line for each verb and kind of table that was measured in several sizes."""
    points: dict[Case, list[Point]] = {}
    for cell in cells:
        case = case_named(cell.case)
        if case.table.axis != COLD:
            kind = replace(case, table=replace(case.table, size=0))
            points.setdefault(kind, []).append(Point(case.table.size, cell))
    found = (Line(kind, tuple(sorted(its, key=lambda point: point.size))) for kind, its in points.items())
    return tuple(line for line in found if line.points[0].size < line.points[-1].size)
