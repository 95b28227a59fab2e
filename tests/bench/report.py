"""The printed report: ratios above 1 where ours is better, a table for each rival, means, and the worst cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.bench.results import (
    OPERATIONS,
    OWN_FILES,
    PARQUET,
    RIVALS,
    SAME_FILES,
    VERSIONS,
    Cell,
    Rival,
    Run,
    geometric_mean,
)

__all__ = ["first_line", "report", "short"]

_NUM_WORST = 12
# The width of the longest operation's name and a space.
_HEADING = max(len(operation) for operation in OPERATIONS) + 1
_TIMED = tuple(operation for operation in OPERATIONS if operation != "size")


def report(run: Run) -> str:
    """Return the run in words and tables."""
    tables, run = run.of_tables, run.of_files
    lines = [" · ".join(f"{name}: {value}" for name, value in run.setting.items()), ""]
    lines += ["Ratios are theirs / ours, so above 1 is better for ours; times are medians over paired rounds.", ""]
    if tables:
        lines += ["Tables against pylance", *_tables(tables), ""]
    if not run.cells:
        return "\n".join(lines)
    for rival in RIVALS:
        lines += [f"Against {rival.title}", *_table(run, rival, "seconds"), ""]
    lines += [f"CPU time against {OWN_FILES.title}", *_table(run, OWN_FILES, "cpu_seconds"), ""]
    for rival in (OWN_FILES, PARQUET):
        lines += [f"Peak memory against {rival.title}", *_table(run, rival, "peak_bytes"), ""]
    for rival in (OWN_FILES, SAME_FILES):
        lines += [f"Slowest against {rival.title}", *_worst(run, rival), ""]
    lines += ["Cells without a ratio", *_errors(run)]
    return "\n".join(lines)


def first_line(error: str) -> str:
    """Return the first line of an error, without random names of files."""
    line = error.splitlines()[0] if error else ""
    # Random file names would make one failure look like many.
    return line.split("/data/")[0] + line.partition(".lance")[2] if "/data/" in line else line


def short(value: float | None) -> str:
    """Return a number in about three digits; `-` if there is none."""
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _table(run: Run, rival: Rival, measure: str) -> Iterator[str]:
    versions = [version for version in VERSIONS if any(cell.version == version for cell in run.cells)]
    operations = [
        name
        for name in (OPERATIONS if measure == "seconds" else _TIMED)
        if any(cell.operation == name and cell.applies(rival) for cell in run.cells)
    ]
    columns = [(operation, version) for operation in operations for version in versions]
    width = max(len("geometric mean"), *(len(cell.case) for cell in run.cells)) + 1
    cell_width = max(7, -(-_HEADING // len(versions)))
    yield " " * width + "".join(f"{name:>{cell_width * len(versions)}}" for name in operations)
    yield " " * width + "".join(f"{version:>{cell_width}}" for _, version in columns)
    for case in dict.fromkeys(cell.case for cell in run.cells):
        cells = [run.cell(case, version, operation) for operation, version in columns]
        yield f"{case:<{width}}" + "".join(f"{_shown(cell, rival, measure):>{cell_width}}" for cell in cells)
    means = [geometric_mean(run.ratios(rival, name, version, measure)) for name, version in columns]
    yield f"{'geometric mean':<{width}}" + "".join(f"{short(mean):>{cell_width}}" for mean in means)
    for name in operations:
        ratios = run.ratios(rival, name, measure=measure)
        if ratios:
            cpu = geometric_mean(run.ratios(rival, name, measure="cpu_seconds"))
            by_cpu = f", {short(cpu)} by CPU time" if measure == "seconds" and name != "size" else ""
            yield (
                f"  {name}: {short(geometric_mean(ratios))} by geometric mean{by_cpu}; "
                f"{sum(ratio < 1 for ratio in ratios)} of {len(ratios)} cells below 1, the least {short(min(ratios))}"
            )


def _shown(cell: Cell | None, rival: Rival, measure: str) -> str:
    if cell is None:
        return "?"
    ratio = cell.ratio(rival, measure)
    if ratio is not None:
        return short(ratio)
    return "unsup." if "Unsupported" in (cell.error(rival) or "") else "error"


def _tables(cells: Sequence[Cell]) -> Iterator[str]:
    width = max(len("geometric mean"), *(len(cell.case) for cell in cells)) + 1
    yield f"{'':<{width}}{'CPU':>7}{'wall':>7}   CPU ms: ours, theirs   wall ms: ours, theirs"
    for cell in cells:
        if cell.ratio(OWN_FILES) is None:
            yield f"{cell.case:<{width}}  {first_line(cell.error(OWN_FILES) or '')}"
            continue
        ratios = "".join(f"{short(cell.ratio(OWN_FILES, measure)):>7}" for measure in ("cpu_seconds", "seconds"))
        times = [
            f"{1e3 * (cell.typical(subject, measure) or 0):>11.1f}"
            for measure in ("cpu_seconds", "seconds")
            for subject in ("ours", "pylance")
        ]
        yield f"{cell.case:<{width}}{ratios}  {''.join(times)}"
    means = (
        geometric_mean(ratio for cell in cells if (ratio := cell.ratio(OWN_FILES, measure)) is not None)
        for measure in ("cpu_seconds", "seconds")
    )
    yield f"{'geometric mean':<{width}}" + "".join(f"{short(mean):>7}" for mean in means)


def _worst(run: Run, rival: Rival) -> Iterator[str]:
    found = [(cell.ratio(rival), cell) for cell in run.cells if cell.operation in _TIMED and cell.applies(rival)]
    ranked = sorted(((ratio, cell) for ratio, cell in found if ratio is not None), key=lambda pair: pair[0])
    for ratio, cell in ranked[:_NUM_WORST]:
        ours, theirs = (1e3 * (cell.typical(subject) or 0) for subject in (rival.ours, rival.theirs))
        by_cpu = short(cell.ratio(rival, "cpu_seconds"))
        what = f"{cell.operation} of {cell.case} {cell.version}"
        yield f"  {short(ratio):>6}  {what}: {ours:.2f} ms, theirs {theirs:.2f} ms; {by_cpu} by CPU time"


def _errors(run: Run) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for cell in run.cells:
        for subject, error in cell.errors.items():
            found.setdefault(f"{subject}: {first_line(error)}", []).append(
                f"{cell.operation} of {cell.case} {cell.version}"
            )
    if not found:
        yield "  none"
    for what, cells in found.items():
        yield f"  {what}"
        yield f"    in {len(cells)} cells: {', '.join(cells[:4])}{' ...' if len(cells) > 4 else ''}"
