"""`python -m tests.bench.dagster [CASE ...]`: Dagster's cost beyond the work; writes `docs/bench-dagster.md`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench.dagster.cases import CASES, Measured
from tests.bench.setting import setting

__all__ = ["measure", "page"]

_PAGE = Path(__file__).parents[3] / "docs" / "bench-dagster.md"


_INTRODUCTION = """# What Dagster costs

`make bench-dagster` writes this page. A backfill ingests 2,000 batches of ten rows in one run; the same ingestion
without Dagster is subtracted. Under a daemon, a backfill is launched as the UI does it, and its run has a process of
its own; the sensors of the dataset run beside it. A tick lists the landing folder, compares it with what Dagster knows,
and asks for runs. Each case has a process and an instance of its own. moto takes longer for each page the more objects
there are, so a server that only lists stands in for S3: it answers each page of 1,000 names after 0.1 s.
"""


def measure(name: str, size: int) -> list[Measured]:
    """Measure a case in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.dagster.cases", name, str(size)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [Measured(**each) for each in json.loads(printed.splitlines()[-1])]


def page(facts: Mapping[str, str], results: Mapping[str, Sequence[Measured]]) -> str:
    """Return the page: a table for each case."""
    of_run = " · ".join(f"{key}: {value}" for key, value in facts.items())
    return "\n".join([_INTRODUCTION, of_run, *_tables(results)])


def _tables(results: Mapping[str, Sequence[Measured]]) -> Iterator[str]:
    for name, measured in results.items():
        yield from ("", f"## {CASES[name].title}: {CASES[name].size:,}", "")
        yield from ("| | measured | bound |", "| --- | --- | --- |")
        for each in measured:
            bound = "" if each.bound is None else f"< {each.bound:g} {each.unit}"
            yield f"| {each.what} | {each.value:.1f} {each.unit} | {bound} |"
    yield ""


def main() -> None:
    """Measure, print the page, and write it if every case was measured; fail if a bound is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.dagster", description=__doc__)
    parser.add_argument("cases", nargs="?", default=",".join(CASES), help="separated by commas; all by default")
    names = parser.parse_args().cases.split(",")
    load_before, start = os.getloadavg()[0], time.monotonic()
    results = {name: measure(name, CASES[name].size) for name in names}
    shown = page(setting(load_before, time.monotonic() - start, 1.0, measured_on="all"), results)
    print(shown)
    if len(names) == len(CASES):
        _PAGE.write_text(shown)
    beyond = [each.what for found in results.values() for each in found if each.bound and each.value >= each.bound]
    if beyond:
        raise SystemExit(f"beyond the bound: {', '.join(beyond)}")


if __name__ == "__main__":
    main()
