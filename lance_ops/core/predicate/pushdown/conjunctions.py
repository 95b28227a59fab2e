"""Split a predicate into conjuncts: those that an index can answer, and those to check row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lance_ops.core.predicate.tree import TRUE, And, Predicate, all_of

__all__ = ["conjuncts", "split_servable"]

T = TypeVar("T")


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the parts that must all be true; no parts for a predicate that is always true."""
    if predicate == TRUE:
        return ()
    return predicate.parts if isinstance(predicate, And) else (predicate,)


def split_servable(predicate: Predicate, servable: Callable[[Predicate], T | None]) -> tuple[list[T], Predicate | None]:
    """Pass the conjuncts to `servable`; return its results other than None and the conjunction of the other conjuncts.

    Conjuncts on the same single column are first passed together, so that `x > 1 AND x < 9` is one range of an index,
    then each alone. The second result is None if no conjunct remains.
    """
    served: list[T] = []
    rest: list[Predicate] = []
    for group in _by_column(conjuncts(predicate)):
        whole = servable(all_of(*group))
        if whole is not None:
            served.append(whole)
            continue
        answers = [(part, servable(part) if len(group) > 1 else None) for part in group]
        served += [answer for _, answer in answers if answer is not None]
        rest += [part for part, answer in answers if answer is None]
    return served, all_of(*rest) if rest else None


def _by_column(parts: tuple[Predicate, ...]) -> list[list[Predicate]]:
    """Group the parts that read only one, the same, column; every other part is a group of its own."""
    groups: list[list[Predicate]] = []
    of_column: dict[str, list[Predicate]] = {}
    for part in parts:
        columns = part.columns()
        if len(columns) == 1 and columns[0] in of_column:
            of_column[columns[0]].append(part)
            continue
        groups.append([part])
        if len(columns) == 1:
            of_column[columns[0]] = groups[-1]
    return groups
