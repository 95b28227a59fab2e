"""The page of results in Markdown: what misses its goal first, then means, the cost of growth, and all cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tests.bench.report import first_line, short
from tests.bench.results import OWN_FILES, Cell, Run, geometric_mean
from tests.bench.tables.cases import case_named
from tests.bench.tables.growth import lines_of

__all__ = ["page"]

_WALL, _CPU = "seconds", "cpu_seconds"

_MOST_FOR_A_FRAGMENT = 1e-4
"""The seconds below which one more fragment is to cost."""

_APPENDS_SYNC = """\
An append of ours waits for the disk twice, so that a power cut loses none of it. An append of pylance does not wait.\
"""

_PREFACE = """\
# Benchmarks of tables

`make bench-tables` writes this page and its chart. It measures this library against `pylance`, the reference
implementation, on tables that grow in fragments, columns and versions; `make bench-tables BENCH=columns,40/scan` prints
some cases alone, and `python -m tests.bench.tables --help` has the rest. A whole run takes about eight minutes on a
machine that does nothing else; on a shared one its numbers are noise.

Every ratio is *theirs / ours*: above 1, ours is better. It is the median over rounds, and its spread is the range
between the quartiles.

- **In turns.** Each contender has a process for each table, with all cores. They take turns, round by round.
- **New handles.** Each round opens the table, and its time includes that. The page cache is warm, and the processes
  have loaded their compiled code. Only `cold` cases are new processes, whose whole life is measured: the interpreter's
  start, the imports, and one call. Their bytecode is compiled before, as an installation does it.
- **The same bytes.** This library writes each table once, and both read it. What changes a table gets a fresh copy in
  each round. In a first round, not counted, both must give the same answer.
- **Durable.** Ours syncs what it commits within the time; pylance leaves that to the system. Before each round, outside
  the time, everything is written to the disk, so that a sync does not wait for what other rounds left unwritten.
- **Rows.** Tables that grow in fragments have {rows} rows of four columns: `id` in no order with a B-tree, `bucket`,
  `value` and `name`. 1% means that 1% of each fragment's rows are deleted. Tables that grow in columns have columns of
  int32.

![Milliseconds against fragments, columns and versions](bench-tables.svg)
"""


def page(run: Run) -> str:
    """Return the page of a run."""
    measured = [cell for cell in run.cells if cell.ratio(OWN_FILES) is not None]
    rows = f"{1_000_000 * float(run.setting['scale']):,.0f}"
    lines = [_PREFACE.format(rows=rows), " · ".join(f"{name}: {value}" for name, value in run.setting.items()), ""]
    lines += ["## Below 1.0", "", *_below(measured), *_unmeasured(run.cells), *_costly_fragments(measured), ""]
    lines += ["## Geometric means", "", *_means(measured), ""]
    lines += ["## One more fragment, column or version", "", *_growth(measured), ""]
    lines += ["## Ratios", "", *_ratios(measured), "## All cases", "", *_all_cases(measured), ""]
    return "\n".join(lines)


def _below(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the cases in which ours is slower by wall time, the slowest first, and those that are by CPU time only."""
    slower = sorted((cell for cell in cells if _ratio(cell) < 1), key=_ratio)
    if not slower:
        yield "No case is below 1.0 by wall time."
    for cell in slower:
        times = " ms against ".join(short(1e3 * _typical(cell, subject)) for subject in ("ours", "pylance"))
        yield f"- `{cell.case}`: **{short(_ratio(cell))}**, by CPU time {short(_ratio(cell, _CPU))}; {times} ms"
    by_cpu = sorted((_ratio(cell, _CPU), cell.case) for cell in cells if _ratio(cell, _CPU) < 1 <= _ratio(cell))
    if by_cpu:
        listed = ", ".join(f"`{case}` {short(ratio)}" for ratio, case in by_cpu)
        yield from ("", f"By CPU time only: {listed}.")
    if any(case_named(cell.case).verb.name == "append" for cell in slower):
        yield from ("", _APPENDS_SYNC)


def _unmeasured(cells: Iterable[Cell]) -> Iterator[str]:
    for cell in cells:
        for subject, error in cell.errors.items():
            yield from ("", f"Not measured: `{cell.case}`, {subject}: {first_line(error)}")


def _costly_fragments(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the verbs for which one more fragment costs too much, the costliest first."""
    lines = (line for line in lines_of(cells) if line.case.table.axis == "fragments")
    costly = [line for line in lines if line.slope("ours") >= _MOST_FOR_A_FRAGMENT]
    if costly:
        yield from ("", f"One more fragment costs {1e3 * _MOST_FOR_A_FRAGMENT:g} ms or more:", "")
    for line in sorted(costly, key=lambda line: -line.slope("ours")):
        ours, theirs = (f"{1e3 * line.slope(subject):.4f} ms" for subject in ("ours", "pylance"))
        yield f"- `{line.name}`: **{ours}**, pylance {theirs}"


def _means(cells: Sequence[Cell]) -> Iterator[str]:
    groups: dict[str, list[Cell]] = {"all": list(cells)}
    for cell in cells:
        groups.setdefault(case_named(cell.case).table.axis, []).append(cell)
    yield from _table("", "cases", "below 1.0", "wall", "CPU")
    for group, its in groups.items():
        below = sum(_ratio(cell) < 1 for cell in its)
        means = (geometric_mean(_ratio(cell, measure) for cell in its) for measure in (_WALL, _CPU))
        yield _row(group, str(len(its)), str(below), *(short(mean) for mean in means))


def _growth(cells: Sequence[Cell]) -> Iterator[str]:
    yield "Milliseconds for each one more, by wall time, between the smallest and the largest table."
    yield ""
    yield from _table("", "sizes", "ours", "pylance")
    for line in lines_of(cells):
        first, last = line.points[0], line.points[-1]
        if first.size < last.size:
            added = (f"{1e3 * line.slope(subject):.4f}" for subject in ("ours", "pylance"))
            yield _row(f"`{line.name}`", f"{first.size:,} to {last.size:,}", *added)


def _ratios(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a table for each axis: a row for each verb, a column for each table."""
    by_name = {cell.case: cell for cell in cells}
    for axis in dict.fromkeys(case_named(cell.case).table.axis for cell in cells):
        cases = [case for case in map(case_named, by_name) if case.table.axis == axis]
        tables = list(dict.fromkeys(case.table for case in cases))
        yield from _table(f"{axis}: wall (CPU)", *(table.name.partition("/")[2].replace("/", ", ") for table in tables))
        for verb in dict.fromkeys(case.verb.name for case in cases):
            found = (by_name.get(f"{table.name}/{verb}") for table in tables)
            shown = (f"{short(_ratio(cell))} ({short(_ratio(cell, _CPU))})" if cell else "" for cell in found)
            yield _row(verb, *shown)
        yield ""


def _all_cases(cells: Iterable[Cell]) -> Iterator[str]:
    yield from _table("", "wall", "spread", "CPU", "ours, ms", "spread", "pylance, ms", "spread", "rounds")
    for cell in cells:
        times = (
            (short(1e3 * _typical(cell, subject)), _spread(cell.typical_quartiles(subject), 1e3))
            for subject in ("ours", "pylance")
        )
        yield _row(
            f"`{cell.case}`",
            short(_ratio(cell)),
            _spread(cell.ratio_quartiles(OWN_FILES)),
            short(_ratio(cell, _CPU)),
            *(text for pair in times for text in pair),
            str(len(cell.samples["ours"])),
        )


def _table(*headings: str) -> Iterator[str]:
    yield _row(*headings)
    yield _row(*["---"] * len(headings))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _spread(quartiles: tuple[float, float] | None, factor: float = 1.0) -> str:
    return "" if quartiles is None else " to ".join(short(factor * value) for value in quartiles)


def _ratio(cell: Cell, measure: str = _WALL) -> float:
    ratio = cell.ratio(OWN_FILES, measure)
    assert ratio is not None, cell.case
    return ratio


def _typical(cell: Cell, subject: str) -> float:
    seconds = cell.typical(subject)
    assert seconds is not None, cell.case
    return seconds
