"""Deal tasks out to groups, so that the groups take about the same time."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["deal"]

T = TypeVar("T")


def deal(tasks: Sequence[T], num_groups: int, weights: Sequence[int] = ()) -> list[list[tuple[int, T]]]:
    """Return at most `num_groups` groups of tasks, each task with its number; the heaviest groups come first.

    The heaviest task goes next, to the group that has least so far. Without weights tasks go out in turn, because
    plans often list large tasks first, or tasks of one size together.
    """
    groups: list[list[tuple[int, T]]] = [[] for _ in range(min(num_groups, len(tasks)))]
    weighed = weights or [1] * len(tasks)
    loads = [(0, number) for number in range(len(groups))]
    for index in sorted(range(len(tasks)), key=lambda index: -weighed[index]):
        load, number = loads[0]
        groups[number].append((index, tasks[index]))
        heapq.heapreplace(loads, (load + max(weighed[index], 1), number))
    totals = {number: load for load, number in loads}
    return [groups[number] for number in sorted(totals, key=lambda number: (-totals[number], number))]
