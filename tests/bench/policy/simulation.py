"""Run a history under a policy, and find the best decisions in hindsight.

Every evening a policy decides what to do; the next day's reads pay for what it left. The policy decides by
the library's own prices, those of `price_debt`. What a day then costs comes from constants, in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

from lance_ops.maintenance.compaction import plan_compaction
from lance_ops.maintenance.debt import DebtPolicy, Due, DueVerb, Inventory, price_debt
from tests.bench.policy.histories import History
from tests.bench.policy.table_state import ROW_BYTES, TableState

__all__ = [
    "STORES",
    "Comparison",
    "Outcome",
    "Store",
    "Work",
    "best_in_hindsight",
    "compare",
    "never",
    "nightly",
    "owed",
    "run",
]

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_NO_VERSIONS = Inventory(num_versions=1, num_removable_versions=0, removable_manifest_bytes=0)
"""Clean-up is left out: it rewrites nothing, and reads do not notice old versions."""


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

    def after(self, read_seconds: float, work: Work, store: Store) -> Outcome:
        """Return the outcome with one more day: its reads, and the work of its evening."""
        seconds = work.rewritten_bytes * store.rewrite_byte_seconds + work.num_runs * store.run_seconds
        return Outcome(
            (*self.read_seconds, read_seconds),
            self.rewritten_bytes + work.rewritten_bytes,
            self.num_runs + work.num_runs,
            self.maintenance_seconds + seconds,
        )


@dataclass(frozen=True)
class Work:
    """What an evening did: the table that it left, the bytes it rewrote, and its runs, at most one."""

    table: TableState
    rewritten_bytes: int = 0
    num_runs: int = 0


@dataclass(frozen=True)
class Comparison:
    """A history on a store under each regime."""

    history: History
    store: Store
    never: Outcome
    nightly: Outcome
    policy: Outcome
    best: Outcome

    @property
    def distance(self) -> float:
        """How many times as much as the best the policy costs."""
        return self.policy.total / self.best.total


_SMALL_ROWS = DebtPolicy().compaction.target_rows_per_fragment * 9 // 10

_ROUNDED = 0.9999
"""Deletions round the rows of each fragment, so two decisions leave slightly different numbers of rows."""

Decide = Callable[[TableState, DebtPolicy], Work]


def never(table: TableState, policy: DebtPolicy) -> Work:
    """Do nothing."""
    return Work(table)


def nightly(table: TableState, policy: DebtPolicy) -> Work:
    """Compact and extend the index as far as anything can be, every evening."""
    found = _steps(table, policy)
    return replace(_taken(table, policy, found.everything, found.extensions), num_runs=1)


def owed(table: TableState, policy: DebtPolicy) -> Work:
    """Take the steps that the policy owes, and none if there are none."""
    found = _steps(table, policy)
    groups = found.chosen if found.compaction_is_owed else ()
    return _taken(table, policy, groups, [due for due in found.extensions if due.is_owed])


def compare(history: History, store: Store, policy: DebtPolicy) -> Comparison:
    """Run a history under each regime."""
    nothing, everything, found = (run(history, store, policy, decide) for decide in (never, nightly, owed))
    best = best_in_hindsight(history, store, policy, [nothing, everything, found])
    return Comparison(history, store, nothing, everything, found, best)


def run(history: History, store: Store, policy: DebtPolicy, decide: Decide) -> Outcome:
    """Return what a history costs if every evening is decided by `decide`."""
    table, outcome = history.start, Outcome()
    for day in history.days:
        work = decide(table, policy)
        table = day.written_to(work.table)
        outcome = outcome.after(history.reads_per_day * store.read_seconds(table), work, store)
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
            for work in _choices(table, policy):
                written = day.written_to(work.table)
                found = outcome.after(history.reads_per_day * store.read_seconds(written), work, store)
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


def _choices(table: TableState, policy: DebtPolicy) -> Iterable[Work]:
    found = _steps(table, policy)
    for extensions in dict.fromkeys([(), found.extensions]):
        for groups in dict.fromkeys([(), found.everything, found.chosen]):
            yield _taken(table, policy, groups, extensions)


_Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _Steps:
    """What can be done with a table: compact every group or those that the policy chooses, and extend the index."""

    everything: _Groups = ()
    chosen: _Groups = ()
    compaction_is_owed: bool = False
    extensions: tuple[Due, ...] = ()


@cache
def _steps(table: TableState, policy: DebtPolicy) -> _Steps:
    """Return what the library's own planner and prices say of a table."""
    if not table.fragments:
        return _Steps()
    snapshot = table.snapshot()
    dues = price_debt(snapshot, policy, _NO_VERSIONS, _NOW).dues
    extensions = tuple(due for due in dues if due.verb is DueVerb.REINDEX)
    compaction = next((due for due in dues if due.verb is DueVerb.COMPACT), None)
    if compaction is None:
        return _Steps(extensions=extensions)
    return _Steps(
        tuple(tuple(task.fragment_ids) for task in plan_compaction(snapshot, policy.compaction).tasks),
        tuple(each.fragment_ids for each in compaction.rewrites),
        compaction.is_owed,
        extensions,
    )


def _taken(table: TableState, policy: DebtPolicy, groups: _Groups, extensions: Sequence[Due]) -> Work:
    """Return the work of a compaction of these groups, and of these extensions of the index."""
    rewritten = sum(due.cost_bytes for due in extensions)
    after = table
    if groups:
        rewritten += table.index_bytes + sum(table.fragments[place].size_bytes for group in groups for place in group)
        after = table.rewritten(groups, policy.compaction.target_rows_per_fragment)
    after = after.reindexed() if extensions else after
    return Work(after, rewritten, int(bool(groups or extensions)))
