"""One writer of the contention lab: `python -m tests.contention.writer ORDERS`, the orders as JSON.

It changes rows of its own only, and knows at any time what must be in the table, might be and must not be. Before and
after each commit it says so in a log that it syncs, one JSON object a line.

When it has opened the table it says so, and begins when it is told to: all race from their first commit to the last.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

import pyarrow as pa

__all__ = ["SCHEMA", "Orders", "main"]

SCHEMA = pa.schema([("writer", pa.int64()), ("row", pa.int64()), ("value", pa.int64())])
_MOST_ROWS_OF_AN_APPEND = 3
_CUT_OFF = "failed on retry_timeout"
"""What the reference says after 30 seconds of retries: it drops the commit under way, which may land all the same."""
_NOT_OURS_TO_JUDGE = ("conflict", "Too many concurrent writers", "retryable", "Retryable")


@dataclass(frozen=True)
class Orders:
    """What one writer has to do; `library` is the module it does it with."""

    library: str
    uri: str
    writer: int
    num_commits: int
    log: str
    storage_options: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the orders as a command line takes them."""
        return json.dumps(asdict(self))


def main(orders: Orders, begin: Callable[[], object]) -> None:
    """Open the table, wait for `begin` to return, and make the commits.

    Raises for an error that is neither a lost race nor an unknown outcome.
    """
    with open(orders.log, "w") as log:
        writer = _Writer(orders, log)
        begin()
        writer.run()


class _Writer:
    def __init__(self, orders: Orders, log: TextIO) -> None:
        self._orders = orders
        self._library: Any = importlib.import_module(orders.library)
        self._log = log
        self._random = random.Random(orders.writer)
        self._next_row = 0
        self._mine: list[int] = []
        self._open()

    def run(self) -> None:
        acts = {self._append: 5, self._delete: 2, self._update: 2, self._compact: 1}
        for _ in range(self._orders.num_commits):
            act = self._random.choices(list(acts), list(acts.values()))[0]
            if not self._mine and act in (self._delete, self._update):
                act = self._append
            act()

    def _append(self) -> None:
        rows = list(range(self._next_row, self._next_row + self._random.randint(1, _MOST_ROWS_OF_AN_APPEND)))
        self._next_row = rows[-1] + 1
        table = pa.table([[self._orders.writer] * len(rows), rows, rows], schema=SCHEMA)
        uri, options = self._orders.uri, self._orders.storage_options
        done = self._try(
            {row: row for row in rows},
            lambda: self._library.write_dataset(table, uri, mode="append", storage_options=options),
        )
        if done:
            self._mine += rows

    def _delete(self) -> None:
        row = self._random.choice(self._mine)
        self._try({row: None}, lambda: self._open().delete(self._only(row)))
        self._mine.remove(row)  # failed or not, it is left alone from here on

    def _update(self) -> None:
        row, value = self._random.choice(self._mine), self._random.randrange(1 << 40)
        done = self._try({row: value}, lambda: self._open().update({"value": str(value)}, where=self._only(row)))
        if not done:
            self._mine.remove(row)

    def _compact(self) -> None:
        self._try({}, lambda: self._open().optimize.compact_files(target_rows_per_fragment=64))

    def _try(self, changes: dict[int, int | None], act: Any) -> bool:
        """Commit; `changes` are rows and what becomes of them, None for gone."""
        self._say(changes, "begun")
        try:
            act()
        except Exception as error:
            name, why = type(error).__name__, str(error)
            if name == "CommitStateUnknown" or _CUT_OFF in why:
                outcome = "unknown"
            elif name in ("RetryableConflict", "TooManyConcurrentWriters") or any(
                text in why for text in _NOT_OURS_TO_JUDGE
            ):
                outcome = "failed"
            else:
                self._say(changes, f"{name}: {error}")
                raise
        else:
            outcome, why = "acknowledged", ""
        self._say(changes, outcome, why)
        return outcome == "acknowledged"

    def _open(self) -> Any:
        return self._library.dataset(self._orders.uri, storage_options=self._orders.storage_options)

    def _only(self, row: int) -> str:
        return f"writer = {self._orders.writer} AND row = {row}"

    def _say(self, changes: dict[int, int | None], outcome: str, why: str = "") -> None:
        said = {"outcome": outcome, "changes": list(changes.items()), "why": why}
        print(json.dumps(said), file=self._log, flush=True)
        os.fsync(self._log.fileno())


def _ask_to_begin() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(Orders(**json.loads(sys.argv[1])), _ask_to_begin)
