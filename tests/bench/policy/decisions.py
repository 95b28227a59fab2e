"""Decide what an evening does with a table: the regimes that the simulation compares.

The policy decides by the library's own prices, those of `price_debt`, and all regimes choose among the groups of
`plan_compaction`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

from lance_ops.maintenance.compaction import plan_compaction
from lance_ops.maintenance.debt import DebtPolicy, Due, Inventory, StepKind, TableDebt, price_debt
from tests.bench.policy.autocomp import Candidate, candidates_of, is_triggered
from tests.bench.policy.table_state import TableState

__all__ = [
    "Decide",
    "Groups",
    "Work",
    "autocomp",
    "candidates",
    "choices",
    "debt_of",
    "forget",
    "never",
    "nightly",
    "owed",
    "steps_of",
    "taken",
]

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_NO_VERSIONS = Inventory(num_versions=1, num_removable_versions=0, removable_manifest_bytes=0)
"""Clean-up is left out: it rewrites nothing, and reads do not notice old versions."""

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Work:
    """What an evening did: the table that it left, the bytes it rewrote, and its runs, at most one."""

    table: TableState
    rewritten_bytes: int = 0
    num_runs: int = 0


Decide = Callable[[TableState, DebtPolicy], Work]


def never(table: TableState, policy: DebtPolicy) -> Work:
    """Do nothing."""
    return Work(table)


def nightly(table: TableState, policy: DebtPolicy) -> Work:
    """Compact and extend the index as far as anything can be, every evening."""
    found = steps_of(table, policy)
    return replace(taken(table, policy, found.everything, found.extensions), num_runs=1)


def autocomp(table: TableState, policy: DebtPolicy) -> Work:
    """Compact all candidates of AutoComp if its trigger fires, and extend the index in the same run."""
    found = candidates(table, policy)
    if not found or not is_triggered(table, found):
        return Work(table)
    return taken(table, policy, tuple(each.fragment_ids for each in found), steps_of(table, policy).extensions)


def owed(table: TableState, policy: DebtPolicy) -> Work:
    """Take the steps that the policy owes, and none if there are none."""
    found = steps_of(table, policy)
    groups = found.chosen if found.compaction_is_owed else ()
    return taken(table, policy, groups, [due for due in found.extensions if due.is_owed])


def choices(table: TableState, policy: DebtPolicy) -> Iterable[Work]:
    """Yield what the search for the best in hindsight tries on an evening."""
    found = steps_of(table, policy)
    for extensions in dict.fromkeys([(), found.extensions]):
        for groups in dict.fromkeys([(), found.everything, found.chosen]):
            yield taken(table, policy, groups, extensions)


@dataclass(frozen=True)
class _Steps:
    """What can be done with a table: compact every group or those that the policy chooses, and extend the index."""

    everything: Groups = ()
    chosen: Groups = ()
    compaction_is_owed: bool = False
    extensions: tuple[Due, ...] = ()


@cache
def steps_of(table: TableState, policy: DebtPolicy) -> _Steps:
    """Return what the library's own planner and prices say of a table."""
    if not table.fragments:
        return _Steps()
    dues = price_debt(table.snapshot(), policy, _NO_VERSIONS, _NOW).dues
    extensions = tuple(due for due in dues if due.kind is StepKind.REINDEX)
    compaction = next((due for due in dues if due.kind is StepKind.COMPACT), None)
    if compaction is None:
        return _Steps(extensions=extensions)
    return _Steps(
        tuple(tuple(task.fragment_ids) for task in plan_compaction(table.snapshot(), policy.compaction).tasks),
        tuple(each.fragment_ids for each in compaction.rewrites),
        compaction.is_owed,
        extensions,
    )


def forget() -> None:
    """Free the memory of the tables that were priced."""
    steps_of.cache_clear()
    debt_of.cache_clear()


@cache
def debt_of(table: TableState, policy: DebtPolicy) -> TableDebt:
    """Price the debt of a table that has rows."""
    return price_debt(table.snapshot(), policy, _NO_VERSIONS, _NOW)


def candidates(table: TableState, policy: DebtPolicy, name: str = "") -> list[Candidate]:
    """Return what AutoComp chooses from in one table."""
    groups = steps_of(table, policy).everything
    return candidates_of(name, table, groups, policy.compaction.target_rows_per_fragment)


def taken(table: TableState, policy: DebtPolicy, groups: Groups, extensions: Sequence[Due]) -> Work:
    """Return the work of a compaction of these groups, and of these extensions of the index."""
    rewritten = sum(due.cost_bytes for due in extensions)
    after = table
    if groups:
        rewritten += table.index_bytes + sum(table.fragments[place].size_bytes for group in groups for place in group)
        after = table.rewritten(groups, policy.compaction.target_rows_per_fragment)
    after = after.reindexed() if extensions else after
    return Work(after, rewritten, int(bool(groups or extensions)))
