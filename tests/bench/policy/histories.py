"""Generated traffic: what is written each day, drawn from fixed seeds, so the same at every call."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.bench.policy.table_state import TableState

__all__ = ["HISTORIES", "Day", "History", "MakeHistory"]


@dataclass(frozen=True)
class Day:
    """A day's writes: the rows of each append, and the share of all rows deleted after them.

    An update is a share of deletions and an append of as many rows.
    """

    appends: tuple[int, ...] = ()
    deleted_share: float = 0.0

    def written_to(self, table: TableState) -> TableState:
        """Return the table after the day's writes."""
        for rows in self.appends:
            table = table.appended(rows)
        return table.deleted(self.deleted_share) if self.deleted_share else table


@dataclass(frozen=True)
class History:
    """A table's traffic: its days, what was there before, and how often it is read a day."""

    name: str
    what: str
    start: TableState
    days: tuple[Day, ...]
    reads_per_day: int
    is_recorded: bool = False


class MakeHistory(Protocol):
    """Makes the first so many days of a history; `scale` multiplies the rows that are written."""

    def __call__(self, num_days: int, *, seed: int = ..., scale: float = ...) -> History: ...


def _streaming(num_days: int, *, seed: int = 1, scale: float = 1.0) -> History:
    chance = random.Random(seed)
    days = [Day(tuple(_scaled(chance.randrange(10_000, 30_000), scale) for _ in range(48))) for _ in range(num_days)]
    return History("streaming", "48 appends of some 20,000 rows a day", TableState(), tuple(days), 100)


def _nightly_batch(num_days: int, *, seed: int = 2, scale: float = 1.0) -> History:
    chance = random.Random(seed)
    days = [Day((_scaled(chance.randrange(400_000, 800_000), scale),), deleted_share=0.01) for _ in range(num_days)]
    start = TableState().appended(1 << 20).appended(1 << 20)
    what = "one append of some 600,000 rows and 1% of all rows deleted a day"
    return History("batches", what, start, tuple(days), 100)


def _bursts(num_days: int, *, seed: int = 3, scale: float = 1.0) -> History:
    chance = random.Random(seed)
    days = []
    for number in range(num_days):
        updated = _scaled(chance.randrange(2_000, 8_000), scale)
        burst = [_scaled(chance.randrange(20_000, 60_000), scale) for _ in range(60)] if number % 5 == 2 else []
        days.append(Day((updated, *burst), deleted_share=0.002))
    start = TableState().appended(1 << 20).appended(1 << 20).reindexed()
    what = "0.2% of the rows updated a day, every fifth day 60 appends of some 40,000 rows; with an index"
    return History("bursts", what, start, tuple(days), 100)


def _scaled(num_rows: int, scale: float) -> int:
    return max(round(num_rows * scale), 1)


HISTORIES: Sequence[MakeHistory] = (_streaming, _nightly_batch, _bursts)
