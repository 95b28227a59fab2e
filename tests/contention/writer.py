"""One writer of the contention tests: `python -m tests.contention.writer TASK`, with the task as JSON.

A writer changes only its own rows. It logs every commit before and after it, one JSON object per line, and syncs the
log. So the log tells which rows must, may and must not be in the table.

The writer prints a line when it has opened the table, and starts when it reads a line: all writers race from their
first commit on.
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

__all__ = ["SCHEMA", "WriterTask", "main"]

SCHEMA = pa.schema([("writer", pa.int64()), ("row", pa.int64()), ("value", pa.int64())])
_MOST_ROWS_OF_AN_APPEND = 3
_CUT_OFF = "failed on retry_timeout"
"""The reference's error after 30 seconds of retries: it abandons the running commit, which may still succeed."""
_LOST_RACE_TEXTS = ("conflict", "Too many concurrent writers", "retryable", "Retryable")


@dataclass(frozen=True)
class WriterTask:
    """The work of one writer; `library` is the module that it imports and calls."""

    library: str
    uri: str
    writer: int
    num_commits: int
    log: str
    storage_options: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the task as a command-line argument."""
        return json.dumps(asdict(self))


def main(task: WriterTask, begin: Callable[[], object]) -> None:
    """Open the table, wait for `begin` to return, and make the commits.

    Raises for an error that is neither a lost race nor an unknown outcome.
    """
    with open(task.log, "w") as log:
        writer = _Writer(task, log)
        begin()
        writer.run()


class _Writer:
    def __init__(self, task: WriterTask, log: TextIO) -> None:
        self._task = task
        self._library: Any = importlib.import_module(task.library)
        self._log = log
        self._random = random.Random(task.writer)
        self._next_row = 0
        self._mine: list[int] = []
        self._open()

    def run(self) -> None:
        actions = {self._append: 5, self._delete: 2, self._update: 2, self._compact: 1}
        for _ in range(self._task.num_commits):
            action = self._random.choices(list(actions), list(actions.values()))[0]
            if not self._mine and action in (self._delete, self._update):
                action = self._append
            action()

    def _append(self) -> None:
        rows = list(range(self._next_row, self._next_row + self._random.randint(1, _MOST_ROWS_OF_AN_APPEND)))
        self._next_row = rows[-1] + 1
        table = pa.table([[self._task.writer] * len(rows), rows, rows], schema=SCHEMA)
        uri, options = self._task.uri, self._task.storage_options
        done = self._try(
            {row: row for row in rows},
            lambda: self._library.write_dataset(table, uri, mode="append", storage_options=options),
        )
        if done:
            self._mine += rows

    def _delete(self) -> None:
        row = self._random.choice(self._mine)
        self._try({row: None}, lambda: self._open().delete(self._filter_of(row)))
        self._mine.remove(row)  # whatever the outcome, never touch the row again

    def _update(self) -> None:
        row, value = self._random.choice(self._mine), self._random.randrange(1 << 40)
        done = self._try({row: value}, lambda: self._open().update({"value": str(value)}, where=self._filter_of(row)))
        if not done:
            self._mine.remove(row)

    def _compact(self) -> None:
        self._try({}, lambda: self._open().optimize.compact_files(target_rows_per_fragment=64))

    def _try(self, changes: dict[int, int | None], action: Any) -> bool:
        """Try a commit; return whether it was acknowledged. `changes` are new values by row, None for a deleted row."""
        self._write_log(changes, "begun")
        try:
            action()
        except Exception as error:
            name, why = type(error).__name__, str(error)
            if name == "CommitStateUnknown" or _CUT_OFF in why:
                outcome = "unknown"
            elif name in ("RetryableConflict", "TooManyConcurrentWriters") or any(
                text in why for text in _LOST_RACE_TEXTS
            ):
                outcome = "failed"
            else:
                self._write_log(changes, f"{name}: {error}")
                raise
        else:
            outcome, why = "acknowledged", ""
        self._write_log(changes, outcome, why)
        return outcome == "acknowledged"

    def _open(self) -> Any:
        return self._library.dataset(self._task.uri, storage_options=self._task.storage_options)

    def _filter_of(self, row: int) -> str:
        return f"writer = {self._task.writer} AND row = {row}"

    def _write_log(self, changes: dict[int, int | None], outcome: str, why: str = "") -> None:
        record = {"outcome": outcome, "changes": list(changes.items()), "why": why}
        print(json.dumps(record), file=self._log, flush=True)
        os.fsync(self._log.fileno())


def _wait_for_start() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(WriterTask(**json.loads(sys.argv[1])), _wait_for_start)
