"""Run a history under each regime, and find the best decisions in hindsight.

Every evening a regime decides what to do; the next day's reads pay for what it left. What a day then costs comes from
constants, in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lance_ops.maintenance.debt import DebtPolicy
from tests.bench.policy.decisions import Decide, Work, autocomp, choices, never, nightly, owed
from tests.bench.policy.histories import History
from tests.bench.policy.table_state import ROW_BYTES, TableState

__all__ = ["STORES", "Comparison", "Outcome", "Store", "best_in_hindsight", "compare", "run"]


@dataclass(frozen=True)
class Store:
    """Seconds for opening a fragment, for reading and for rewriting a byte, and for a run of maintenance."""

    name: str
    open_seconds: float
    read_byte_seconds: float
    rewrite_byte_seconds: float
    run_seconds: float

    def read_seconds(self, table: TableState) -> float:
        """Return the seconds of one read of the table; with an index also of one look-up, which scans what it lacks."""
        seconds = table.size_bytes * self.read_byte_seconds + len(table.fragments) * self.open_seconds
        missing = [each for each in table.fragments if not each.is_indexed] if table.has_index else []
        return seconds + sum(each.size_bytes * self.read_byte_seconds + self.open_seconds for each in missing)


LOCAL = Store("a local disk", 0.0001, 1 / 2e9, 1 / 0.25e9, 1.0)
OBJECT_STORE = Store("an object store", 0.008, 1 / 0.5e9, 1 / 0.125e9, 2.0)
STORES = (LOCAL, OBJECT_STORE)
"""The stores of `docs/policy.md`, which says where the numbers come from."""


@dataclass(frozen=True)
class Outcome:
    """What a history cost under some decisions, day by day."""

    read_seconds: tuple[float, ...] = ()
    rewritten_bytes: int = 0
    num_runs: int = 0
    maintenance_seconds: float = 0.0

    @property
    def total(self) -> float:
        """The seconds of reads and maintenance together."""
        return sum(self.read_seconds) + self.maintenance_seconds

    def after(self, read_seconds: float, works: Sequence[Work], store: Store) -> Outcome:
        """Return the outcome with one more day: its reads, and the works of its evening."""
        rewritten, num_runs = sum(each.rewritten_bytes for each in works), sum(each.num_runs for each in works)
        seconds = rewritten * store.rewrite_byte_seconds + num_runs * store.run_seconds
        return Outcome(
            (*self.read_seconds, read_seconds),
            self.rewritten_bytes + rewritten,
            self.num_runs + num_runs,
            self.maintenance_seconds + seconds,
        )


@dataclass(frozen=True)
class Comparison:
    """A history on a store under each regime; `told` is the policy that knows how often a day reads the table."""

    history: History
    store: Store
    never: Outcome
    nightly: Outcome
    autocomp: Outcome
    policy: Outcome
    told: Outcome
    best: Outcome

    @property
    def distance(self) -> float:
        """How many times as much as the best the policy costs."""
        return self.policy.total / self.best.total


_SMALL_ROWS = DebtPolicy().limits.small_fragment_rows

_ROUNDED = 0.9999
"""Deletions round the rows of each fragment, so two decisions leave slightly different numbers of rows."""


def compare(history: History, store: Store, policy: DebtPolicy) -> Comparison:
    """Run a history under each regime."""
    regimes = (never, nightly, autocomp, owed)
    nothing, everything, by_rank, found = (run(history, store, policy, decide) for decide in regimes)
    knowing = replace(policy, rates=replace(policy.rates, payback_reads=history.reads_per_day))
    told = run(history, store, knowing, owed)
    best = best_in_hindsight(history, store, policy, [nothing, everything, by_rank, found, told])
    return Comparison(history, store, nothing, everything, by_rank, found, told, best)


def run(history: History, store: Store, policy: DebtPolicy, decide: Decide) -> Outcome:
    """Return what a history costs if every evening is decided by `decide`."""
    table, outcome = history.start, Outcome()
    for day in history.days:
        work = decide(table, policy)
        table = day.written_to(work.table)
        outcome = outcome.after(history.reads_per_day * store.read_seconds(table), [work], store)
    return outcome


def best_in_hindsight(history: History, store: Store, policy: DebtPolicy, known: Sequence[Outcome]) -> Outcome:
    """Return the cheapest sequence of decisions that dynamic programming over the days finds, or the best of `known`.

    On each evening a table is left alone, or all of it or the policy's choice is compacted, with or without the index.
    Of tables that are alike in `_likeness`, only the cheapest is followed, and none that must end above the best known.
    """
    best = min(known, key=lambda outcome: outcome.total)
    states = {_likeness(history.start): (history.start, Outcome())}
    for day, to_come in zip(history.days, _least_to_come(history, store), strict=True):
        later: dict[tuple[int, ...], tuple[TableState, Outcome]] = {}
        for table, outcome in states.values():
            for work in choices(table, policy):
                written = day.written_to(work.table)
                found = outcome.after(history.reads_per_day * store.read_seconds(written), [work], store)
                alike = _likeness(written)
                if found.total + to_come <= best.total and (alike not in later or found.total < later[alike][1].total):
                    later[alike] = written, found
        states = later
    return min([best, *(outcome for _, outcome in states.values())], key=lambda outcome: outcome.total)


def _likeness(table: TableState) -> tuple[int, ...]:
    """Return what later costs depend on: fragments, and bytes that are deleted, small or not indexed, in 20 MB."""
    small = sum(each.size_bytes for each in table.fragments if each.live < _SMALL_ROWS)
    deleted = sum(each.deleted for each in table.fragments) * ROW_BYTES
    unindexed = sum(each.size_bytes for each in table.fragments if not each.is_indexed)
    return len(table.fragments), *(size_bytes // 20_000_000 for size_bytes in (small, deleted, unindexed))


def _least_to_come(history: History, store: Store) -> list[float]:
    """Return for each day what the reads of the days after it cost at least: the bytes of the live rows."""
    table, least = history.start, []
    for day in history.days:
        table = day.written_to(table)
        live_bytes = sum(each.live for each in table.fragments) * ROW_BYTES
        least.append(history.reads_per_day * live_bytes * store.read_byte_seconds)
    return [sum(least[number:]) * _ROUNDED for number in range(1, len(least) + 1)]
