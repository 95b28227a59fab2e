"""Half-open ranges of row numbers: join them, and split them into portions of a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

__all__ = ["RowRange", "join_ranges", "split_ranges"]

RowRange: TypeAlias = tuple[int, int]
"""The rows from the first number up to, but without, the second."""


def join_ranges(ranges: Iterable[RowRange]) -> list[RowRange]:
    """Return the same rows as ascending ranges that neither touch nor overlap nor are empty."""
    joined: list[RowRange] = []
    for start, stop in sorted(ranges):
        if start >= stop:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], stop)
        else:
            joined.append((start, stop))
    return joined


def split_ranges(ranges: Iterable[RowRange], max_rows: int) -> Iterator[list[RowRange]]:
    """Yield the ranges in portions of at most `max_rows` rows, cutting long ones."""
    portion: list[RowRange] = []
    room = max_rows
    for start, stop in ranges:
        while start < stop:
            end = min(stop, start + room)
            portion.append((start, end))
            room -= end - start
            start = end
            if not room:
                yield portion
                portion, room = [], max_rows
    if portion:
        yield portion
