"""Share a night's budget among the tables of a fleet, by what each part of each table's debt gains for its bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lance_ops.maintenance.debt import (
    BudgetIncrement,
    Due,
    Rates,
    Rewrite,
    StepKind,
    budget_increments,
    choose_rewrites,
)

__all__ = ["allot"]


def allot(dues: Mapping[str, Sequence[Due]], rates: Rates, max_bytes: int) -> dict[str, int]:
    """Return the bytes that each table may rewrite to pay its dues, at most `max_bytes` together.

    The parts of all tables compete with each other: a table whose debt as a whole gains little for its bytes may have
    parts that gain much. A payment takes a table's steps in the order of their kinds, so it may spend these bytes on
    other parts than those that earned them.
    """
    keyed = {(table, due.key): due for table, owed in dues.items() for due in owed}
    overheads = {
        key: due.cost_bytes - sum(each.cost_bytes for each in _rewrites(due, rates)) for key, due in keyed.items()
    }
    offers = [(key, each) for key, due in keyed.items() for each in _offers(due, overheads[key], rates)]
    allotted = dict.fromkeys(dues, 0)
    for key, rewrites in choose_rewrites(offers, max_bytes, overheads).items():
        allotted[key[0]] += overheads[key] + sum(each.cost_bytes for each in rewrites)
    return allotted


def _offers(due: Due, overhead: int, rates: Rates) -> Iterator[BudgetIncrement]:
    """Yield what can be paid of a due; the indices that a compaction moves make all its parts dearer."""
    dearer = rates.score(1, due.cost_bytes) / rates.score(1, due.cost_bytes - overhead)
    for each in budget_increments(_rewrites(due, rates)):
        yield replace(each, score=each.score * dearer)


def _rewrites(due: Due, rates: Rates) -> tuple[Rewrite, ...]:
    """Return the rewrites of a compaction; a step of another kind is taken whole, as one rewrite."""
    if due.kind is StepKind.COMPACT:
        return due.rewrites
    return (Rewrite((), due.gain_bytes, due.cost_bytes, rates.score(due.gain_bytes, due.cost_bytes)),)
