"""`python -m tests.bench.scale`: measure large manifests, simulate a large cluster; writes `docs/scale.md`."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.bench.scale.page import page
from tests.bench.scale.recorded import driver_lines, fragment_costs, manifest_costs
from tests.bench.setting import setting

_PAGE = Path(__file__).parents[3] / "docs" / "scale.md"
_COUNTS = (10_000, 100_000, 1_000_000)
_WHOLE_BYTES = 100e12
_MEASURED_BYTES = 100_000_000


def main() -> None:
    """Measure, print the page, and write it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("--out", type=Path, default=_PAGE, help="the page to write")
    arguments = parser.parse_args()
    load_before, start = os.getloadavg()[0], time.monotonic()
    one = fragment_costs(_MEASURED_BYTES)
    with tempfile.TemporaryDirectory(prefix="lance-ops-bench-") as scratch:
        manifests = {count: manifest_costs(count, Path(scratch)) for count in _COUNTS}
    merge, index = driver_lines("merge_driver"), driver_lines("index_driver")
    facts = setting(load_before, time.monotonic() - start, 1.0, measured_on="one")
    told = {name: fact for name, fact in facts.items() if name != "scale"}
    shown = page(told, manifests, one, _WHOLE_BYTES, merge, index)
    print(shown)
    arguments.out.write_text(shown)


if __name__ == "__main__":
    main()
