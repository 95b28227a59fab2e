"""The page of results: what misses its target first, then all cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from tests.bench.spark.cases import LONG_TABLE
from tests.bench.spark.rounds import Measured

__all__ = ["page"]

_PREFACE = """\
# Benchmark on Spark

`make bench-spark` writes this page. One session on `local[2]` measures this library against Spark's own Parquet, and
against `pylance` where Spark has no such operation. Contenders take turns, and each second round begins with the other.
Ratios are *ours / theirs*: below 1, ours is faster. A ratio is the median over the pairs of rounds.

- **Rows**: {rows:,} of an int64, a double, a string and a list of 32 floats, in 8 files; {fragments} fragments for the
  compaction, with a BTREE and 2% deleted rows. The long table has {long:,} rows of an int64 and a double. Spark's tasks
  build its index and join its merge; for the shorter one both are done in the driver, where a task would not be worth
  its start.
- **warm**: the Python workers have run the operation before. **idle**: the workers have ended, as they do after a
  minute without work, and their daemon is there. **cold**: daemon and workers have ended, as on a new executor. The JVM
  and Spark's own code are warm throughout.
- **CPU**: of the driver, the JVM and all Python processes together; it says more than wall time on a shared machine.
- **Spark itself**: what Spark takes for the like in Python without this library: as many rows from the memory of Python
  workers, rows that a Python writer drops, or as many tasks that do nothing. Cold ones are PySpark's own workers, so
  this is how long Spark starts Python. *Beyond it* is the ratio without that time.
- **Durable**: ours syncs what it commits. Spark's Parquet and pylance leave that to the system.
"""


def page(setting: Mapping[str, str], results: Sequence[Measured], *, num_rows: int, num_fragments: int) -> str:
    """Return the page in Markdown."""
    missed = sorted((each for each in results if each.is_missed), key=lambda each: each.most / each.ratio)
    lines = [
        _PREFACE.format(rows=num_rows, fragments=num_fragments, long=num_rows * LONG_TABLE),
        " · ".join(f"{name}: {value}" for name, value in setting.items()),
        "",
        "## Missed",
        "",
        *(
            f"- {each.case}, {each.state}: **{each.ratio:.2f}** of {each.against}, at most {each.most:.2f} wanted; "
            f"by CPU time {each.cpu_ratio:.2f}{_beyond_spark(each)}"
            for each in missed
        ),
        *(() if missed else ("Every target is met.",)),
        "",
        "## All",
        "",
        _heading(),
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *map(_row, results),
        "",
    ]
    return "\n".join(lines)


def _heading() -> str:
    measures = ("wanted", "ratio", "spread", "CPU", "ours, s", "theirs, s", "Spark itself, s", "beyond it", "rounds")
    return f"| operation | workers | against | {' | '.join(measures)} |"


def _row(each: Measured) -> str:
    ratios = sorted(ours / theirs for ours, theirs in each.seconds)
    cells: Iterable[str] = (
        each.case,
        each.state,
        each.against,
        f"≤ {each.most:.2f}",
        f"**{each.ratio:.2f}**" if each.is_missed else f"{each.ratio:.2f}",
        f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
        f"{each.cpu_ratio:.2f}",
        *(f"{median(pair[who] for pair in each.seconds):.2f}" for who in (0, 1)),
        f"{median(each.bound_seconds):.2f}" if each.bound_seconds else "",
        "" if each.own_ratio is None else f"{each.own_ratio:.2f}",
        str(len(ratios)),
    )
    return f"| {' | '.join(cells)} |"


def _beyond_spark(each: Measured) -> str:
    if each.own_ratio is None:
        return ""
    ours, bound = median(pair[0] for pair in each.seconds), median(each.bound_seconds)
    if bound > ours:  # its own workers start later than those of the library's daemon
        return f". Ours takes {ours:.2f} s, and Spark itself {bound:.2f}"
    return f". Spark itself takes {bound:.2f} s of {ours:.2f}; beyond it {each.own_ratio:.2f}"
