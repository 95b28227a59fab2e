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


def split_servable(
    predicate: Predicate, *servable: Callable[[Predicate], T | None]
) -> tuple[list[T], Predicate | None]:
    """Pass the conjuncts to `servable`; return its results other than None and the conjunction of the other conjuncts.

    Conjuncts on the same single column are passed together where possible, so that `x > 1 AND x < 9` is one range of an
    index. Of several functions, the first that serves any of these conjuncts is the only one to serve them. The second
    result is None if no conjunct remains.
    """
    served: list[T] = []
    rest: list[Predicate] = []
    for group in _by_column(conjuncts(predicate)):
        answers, others = next((found for each in servable if (found := _served(group, each))[0]), (list[T](), group))
        served += answers
        rest += others
    return served, all_of(*rest) if rest else None


def _served(group: list[Predicate], servable: Callable[[Predicate], T | None]) -> tuple[list[T], list[Predicate]]:
    """Return the results for a group, or for those of its parts that have one, and the other parts."""
    whole = servable(all_of(*group))
    if whole is not None:
        return [whole], []
    answers = [servable(part) for part in group] if len(group) > 1 else [None]
    parts = [part for part, answer in zip(group, answers, strict=True) if answer is not None]
    others = [part for part, answer in zip(group, answers, strict=True) if answer is None]
    if parts and others:
        return _served(parts, servable)[0], others
    return [answer for answer in answers if answer is not None], others


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
