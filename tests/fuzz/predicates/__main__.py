"""Compare random filters and computed columns: `python -m tests.fuzz.predicates --count 10000 --seed 1`.

Prints every difference that is not known, with the seed of its table, and how many expressions showed each known one.
The exit code is 1 if there is an unknown one. `--seed` with a table's seed makes that table and its expressions again.
"""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.predicates.comparison import ALL_REASONS
from tests.fuzz.predicates.survey import survey


def main() -> int:
    """Run the survey that the arguments describe."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.predicates", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many expressions to compare")
    parser.add_argument("--seed", type=int, default=1, help="the first table's seed")
    arguments = parser.parse_args()
    found = survey(arguments.count, arguments.seed)
    for difference in found.unknown:
        print(difference)
    filters = found.compared - found.columns
    print(f"{filters} filters and {found.columns} computed columns compared, {found.agreed} agreed")
    print(f"{found.used} filters had to use an index")
    for reason in sorted(ALL_REASONS, key=lambda reason: -found.known[reason]):
        print(f"{found.known[reason]:6} known: {reason}")
    print(f"{len(found.unknown):6} unknown")
    return 1 if found.unknown else 0


if __name__ == "__main__":
    sys.exit(main())
