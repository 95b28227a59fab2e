"""`python -m tests.bench.policy [--days 30]`: simulate the policy of upkeep, and write `docs/policy.md`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from lance_ops.maintenance.debt import DebtPolicy
from tests.bench.policy.fleet import BUDGETS, compare_fleet, fleet_of
from tests.bench.policy.histories import HISTORIES
from tests.bench.policy.page import page
from tests.bench.policy.simulation import STORES, compare

PAGE = Path(__file__).parents[3] / "docs" / "policy.md"
READS_PER_DAY = (10, 100, 1000)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.policy", description=__doc__)
    parser.add_argument("--days", type=int, default=30, help="how long each history is")
    parser.add_argument("--out", type=Path, default=PAGE, help="where the page goes")
    arguments = parser.parse_args()
    histories = [replace(make(arguments.days), reads_per_day=reads) for make in HISTORIES for reads in READS_PER_DAY]
    found = [compare(history, store, DebtPolicy()) for store in STORES for history in histories]
    fleet = fleet_of(arguments.days)
    fleets = [compare_fleet(fleet, store, DebtPolicy(), budget) for store in STORES for budget in BUDGETS]
    arguments.out.write_text(page(found, fleets, arguments.days))


if __name__ == "__main__":
    main()
