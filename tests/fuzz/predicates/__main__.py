"""Compare random predicates: `python -m tests.fuzz.predicates --count 10000 --seed 1`.

Prints every difference that is not known, with the seed of its table, and how many predicates showed each known one.
The exit code is 1 if there is an unknown one. `--seed` with a table's seed makes that table and its predicates again.
"""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.predicates.survey import survey


def main() -> int:
    """Run the survey that the arguments describe."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.predicates", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many predicates to compare")
    parser.add_argument("--seed", type=int, default=1, help="the first table's seed")
    arguments = parser.parse_args()
    found = survey(arguments.count, arguments.seed)
    for difference in found.unknown:
        print(difference)
    print(f"{found.compared} predicates compared, {found.agreed} agreed, {found.used} had to use an index")
    for reason, times in found.known.most_common():
        print(f"{times:6} known: {reason}")
    print(f"{len(found.unknown):6} unknown")
    return 1 if found.unknown else 0


if __name__ == "__main__":
    sys.exit(main())
