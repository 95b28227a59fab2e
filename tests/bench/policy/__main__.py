"""Simulate the policy of upkeep, and write `docs/policy.md`.

    python -m tests.bench.policy [--days 30]
    python -m tests.bench.policy --record URI NAME --what TEXT [--rehearsed]

The second form adds a table's history to the recorded ones, which the first form simulates beside the generated ones.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from lance_ops import dataset
from lance_ops.maintenance.debt import DebtPolicy
from tests.bench.policy.decisions import forget
from tests.bench.policy.fleet import BUDGETS, NUM_FLEETS, FleetComparison, compare_fleet, fleet_of
from tests.bench.policy.histories import HISTORIES, History
from tests.bench.policy.page import page
from tests.bench.policy.recording import record, recorded, save
from tests.bench.policy.simulation import STORES, Comparison, compare

PAGE = Path(__file__).parents[3] / "docs" / "policy.md"
READS_PER_DAY = (10, 100, 1000)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.policy", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--days", type=int, default=30, help="how long each generated history is")
    parser.add_argument("--out", type=Path, default=PAGE, help="where the page goes")
    parser.add_argument("--record", nargs=2, metavar=("URI", "NAME"), help="record this table's history under a name")
    parser.add_argument("--what", default="", help="where it was recorded, for people")
    parser.add_argument("--rehearsed", action="store_true", help="each version that writes rows is a day of its own")
    arguments = parser.parse_args()
    if arguments.record is not None:
        uri, name = arguments.record
        print(save(record(dataset(uri), name, arguments.what or f"recorded from {uri}", rehearsed=arguments.rehearsed)))
        return
    histories = [*(make(arguments.days) for make in HISTORIES), *recorded()]
    found = [each for history in histories for each in _compared(history)]
    fleets = [each for number in range(1, NUM_FLEETS + 1) for each in _compared_fleet(number, arguments.days)]
    fleets.sort(key=lambda each: STORES.index(each.store))
    arguments.out.write_text(page(found, fleets, arguments.days))


def _compared(history: History) -> list[Comparison]:
    """Compare the regimes on each store, and forget the states of this history, which no other history reaches."""
    read = [replace(history, reads_per_day=reads) for reads in READS_PER_DAY]
    found = [compare(each, store, DebtPolicy()) for store in STORES for each in read]
    forget()
    return found


def _compared_fleet(number: int, num_days: int) -> list[FleetComparison]:
    histories = fleet_of(number, num_days)
    found = [compare_fleet(number, histories, store, DebtPolicy(), budget) for budget in BUDGETS for store in STORES]
    forget()
    return found


if __name__ == "__main__":
    main()
