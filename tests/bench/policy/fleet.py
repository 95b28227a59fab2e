"""Run many tables under one budget of bytes a night: the shares of `allot` against the rank of AutoComp."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lance_ops.maintenance.debt import DebtPolicy, plan_payment
from lance_ops.maintenance.fleet import allot
from tests.bench.policy.autocomp import ranked, within
from tests.bench.policy.decisions import Groups, Work, candidates, debt_of, steps_of, taken
from tests.bench.policy.histories import HISTORIES, History
from tests.bench.policy.simulation import Outcome, Store
from tests.bench.policy.table_state import TableState

__all__ = ["BUDGETS", "NUM_FLEETS", "NUM_TABLES", "FleetComparison", "compare_fleet", "fleet_of"]

NUM_FLEETS = 3
NUM_TABLES = 20
BUDGETS = (100_000_000, 300_000_000, 1_000_000_000, 3_000_000_000)
"""Bytes a night, from a budget that reaches for little to one that reaches for nearly everything."""

_SCALES = (0.1, 0.3, 1.0)
_READS_PER_DAY = (10, 100, 1000)
Night = Callable[[Sequence[TableState], DebtPolicy, int], list[Work]]


@dataclass(frozen=True)
class FleetComparison:
    """A fleet on a store, with one budget, under each regime."""

    number: int
    num_tables: int
    store: Store
    max_bytes: int
    never: Outcome
    in_turn: Outcome
    autocomp: Outcome
    policy: Outcome


def fleet_of(number: int, num_days: int, num_tables: int = NUM_TABLES) -> list[History]:
    """Return tables of all histories, sizes and frequencies of reads, mixed by a fixed seed; none has an index."""
    chance = random.Random(number)
    made = []
    for at in range(num_tables):
        seed, scale = 1000 * number + at, chance.choice(_SCALES)
        history = HISTORIES[at % len(HISTORIES)](num_days, seed=seed, scale=scale)
        start = replace(history.start, has_index=False)
        made.append(replace(history, start=start, reads_per_day=chance.choice(_READS_PER_DAY)))
    return made


def compare_fleet(
    number: int, histories: Sequence[History], store: Store, policy: DebtPolicy, max_bytes: int
) -> FleetComparison:
    """Run a fleet under each regime."""
    regimes = (_never, _in_turn, _by_autocomp, _by_shares)
    found = (_run(histories, store, policy, max_bytes, night) for night in regimes)
    return FleetComparison(number, len(histories), store, max_bytes, *found)


def _run(histories: Sequence[History], store: Store, policy: DebtPolicy, max_bytes: int, night: Night) -> Outcome:
    tables, outcome = [history.start for history in histories], Outcome()
    for days in zip(*(history.days for history in histories), strict=True):
        works = night(tables, policy, max_bytes)
        tables = [day.written_to(work.table) for day, work in zip(days, works, strict=True)]
        reads = zip(histories, tables, strict=True)
        seconds = sum(history.reads_per_day * store.read_seconds(table) for history, table in reads)
        outcome = outcome.after(seconds, works, store)
    return outcome


def _never(tables: Sequence[TableState], policy: DebtPolicy, max_bytes: int) -> list[Work]:
    return [Work(table) for table in tables]


def _in_turn(tables: Sequence[TableState], policy: DebtPolicy, max_bytes: int) -> list[Work]:
    """Compact all that can be compacted, one table after the other, as far as the budget goes."""
    works = []
    for table in tables:
        found = steps_of(table, policy)
        everything = taken(table, policy, found.everything, ())
        work = everything if everything.rewritten_bytes <= max_bytes else Work(table)
        max_bytes -= work.rewritten_bytes
        works.append(work)
    return works


def _by_autocomp(tables: Sequence[TableState], policy: DebtPolicy, max_bytes: int) -> list[Work]:
    """Compact the candidates of all tables by their rank."""
    found = [each for place, table in enumerate(tables) for each in candidates(table, policy, str(place))]
    chosen: dict[str, Groups] = {}
    for each in within(ranked(found), max_bytes):
        chosen[each.table] = (*chosen.get(each.table, ()), each.fragment_ids)
    return [taken(table, policy, chosen.get(str(place), ()), ()) for place, table in enumerate(tables)]


def _by_shares(tables: Sequence[TableState], policy: DebtPolicy, max_bytes: int) -> list[Work]:
    """Share the budget and pay each table within its share, as `maintain` does."""
    works = [Work(table) for table in tables]
    debts = {str(place): debt_of(table, policy) for place, table in enumerate(tables) if table.fragments}
    for name, allotted in allot({name: debt.owed for name, debt in debts.items()}, policy.rates, max_bytes).items():
        steps = plan_payment(debts[name], allotted).steps
        groups = tuple(each.fragment_ids for due in steps for each in due.rewrites)
        works[int(name)] = taken(tables[int(name)], policy, groups, ())
    return works
