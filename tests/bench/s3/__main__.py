"""`python -m tests.bench.s3`: ours against pylance on an object store; writes `docs/bench-s3.md`."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from tests.bench.s3.page import page
from tests.bench.s3.rounds import measure
from tests.bench.setting import setting

_PAGE = Path(__file__).parents[3] / "docs" / "bench-s3.md"


def main() -> None:
    """Measure, print the page, and write it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.s3", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds beside the first one, which warms up")
    parser.add_argument("--out", type=Path, default=_PAGE, help="the page to write")
    arguments = parser.parse_args()
    load_before, start = os.getloadavg()[0], time.monotonic()
    results = measure(arguments.rounds)
    shown = page(setting(load_before, time.monotonic() - start, 1.0, measured_on="all"), results)
    print(shown)
    arguments.out.write_text(shown)


if __name__ == "__main__":
    main()
