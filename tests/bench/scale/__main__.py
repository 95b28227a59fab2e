"""`python -m tests.bench.scale`: measure large manifests, simulate a large cluster; writes `docs/scale.md`.

The page names the commit that it measures, so the work tree must have no other change. `--scale 0.01 --out FILE` tries
the program on small tables.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.bench.scale.page import page
from tests.bench.scale.recorded import driver_lines, fragment_costs, manifest_costs
from tests.bench.setting import commit_of_tree, setting

_PAGE = Path(__file__).parents[3] / "docs" / "scale.md"
_COUNTS = (10_000, 100_000, 1_000_000)
_FRAGMENTS_OF_DRIVERS = 100_000
_MILLIONS_OF_KEYS = 100
_WHOLE_BYTES = 100e12
_MEASURED_BYTES = 100_000_000


def main() -> None:
    """Measure, print the page, and write it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=_PAGE, help="the page to write")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="a fraction of the fragments and keys, not for the page"
    )
    arguments = parser.parse_args()
    if arguments.out == _PAGE and (arguments.scale != 1 or commit_of_tree().endswith("-dirty")):
        parser.error("commit the changes and measure at scale 1 to write the page, or name another file by --out")
    load_before, start = os.getloadavg()[0], time.monotonic()
    one = fragment_costs(_MEASURED_BYTES)
    with tempfile.TemporaryDirectory(prefix="lance-ops-bench-") as scratch:
        counts = [round(count * arguments.scale) for count in _COUNTS]
        manifests = {count: manifest_costs(count, Path(scratch)) for count in counts}
    sizes = round(_FRAGMENTS_OF_DRIVERS * arguments.scale), max(1, round(_MILLIONS_OF_KEYS * arguments.scale))
    merge, index = driver_lines("merge_driver", *sizes), driver_lines("index_driver", *sizes)
    facts = setting(load_before, time.monotonic() - start, 1.0, measured_on="one")
    told = {name: fact for name, fact in facts.items() if name != "scale"}
    shown = page(told, manifests, one, _WHOLE_BYTES * arguments.scale, merge, index)
    print(shown)
    arguments.out.write_text(shown)


if __name__ == "__main__":
    main()
