"""`python -m tests.bench.s3 [WORD ...]`: ours against pylance on an object store; writes `docs/bench-s3.md`.

Only a whole run replaces the page; a run of some operations prints, and writes where `--out` says.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from tests.bench.measuring import compile_kernels
from tests.bench.s3.operations import operations_chosen
from tests.bench.s3.page import page
from tests.bench.s3.rounds import measure
from tests.bench.setting import setting

_PAGE = Path(__file__).parents[3] / "docs" / "bench-s3.md"


def main() -> None:
    """Measure, and print the page; a whole run also writes it to docs/."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.s3", description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of the operations' names: take,restore")
    parser.add_argument("--rounds", type=int, default=5, help="rounds beside the first one, which warms up")
    parser.add_argument("--out", type=Path, help="the page to write")
    arguments = parser.parse_args()
    words = [word for each in arguments.words for word in each.split(",") if word]
    load_before = os.getloadavg()[0]
    compile_kernels()
    start = time.monotonic()
    results = measure(arguments.rounds, operations_chosen(words))
    shown = page(setting(load_before, time.monotonic() - start, 1.0, measured_on="all"), results)
    print(shown)
    out = arguments.out or (None if words else _PAGE)
    if out:
        out.write_text(shown)


if __name__ == "__main__":
    main()
