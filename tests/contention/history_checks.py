"""Read a table's history, and check it against the logs of all writers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import lance_ops
from lance_ops.store import LocalStore

__all__ = ["History", "Log", "LoggedCommit", "check_history", "check_rows", "read_history", "read_log", "table_of"]

Row = tuple[int, int]
"""The writer, and the row's number within the writer's rows."""
Table = Mapping[Row, int]
Change = frozenset[tuple[Row, int | None]]
"""Rows and their new values, None for a deleted row."""
_ALLOWED_CHANGE = {"Append": "rows added", "Delete": "rows removed", "Update": "values changed"}
"""How operations may change rows; all others must not change them."""
_AT_ONCE = 16


@dataclass(frozen=True)
class LoggedCommit:
    """One commit that a writer tried, and its outcome; `begun` if the log has none."""

    outcome: str
    change: Change


Log = Sequence[LoggedCommit]


@dataclass(frozen=True)
class History:
    """The operations, libraries and row changes of the versions after the first, and the rows of the newest."""

    operations: Counter[str]
    libraries: Counter[str]
    changes: Sequence[Change]
    table: Table


def read_log(path: Path, writer: int) -> Log:
    """Return a writer's commits in order."""
    entries: list[LoggedCommit] = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        entry = LoggedCommit(record["outcome"], frozenset(((writer, row), value) for row, value in record["changes"]))
        if entries and entries[-1].outcome == "begun":
            entries.pop()
        entries.append(entry)
    return entries


def read_history(dataset: lance_ops.LanceDataset, folder: Path) -> History:
    """Read every version; assert that none is missing, and that each changed rows only as its operation may.

    Reads a copy of all files in `folder`, so that each file is fetched once, however many versions name it.
    """
    _copy(dataset, folder)
    copy = lance_ops.dataset(str(folder))
    versions = [version["version"] for version in dataset.version_refs()]
    assert versions == list(range(1, dataset.version + 1))
    assert versions == [version["version"] for version in copy.version_refs()]

    operations, libraries, changes = Counter[str](), Counter[str](), list[Change]()
    before: Table = table_of(copy.checkout_version(1).to_table())
    for version in versions[1:]:
        transaction = copy.read_transaction(version)
        assert transaction is not None, f"version {version} has no transaction"
        name = type(transaction.operation).__name__
        made = copy.checkout_version(version)
        now = table_of(made.to_table())
        change = frozenset((row, now.get(row)) for row in before.keys() | now.keys() if before.get(row) != now.get(row))
        wrong = {
            kind
            for row, value in change
            if (kind := _kind_of_change(before.get(row), value)) != _ALLOWED_CHANGE.get(name)
        }
        assert not wrong, f"version {version}, {name}: {wrong}"
        writer = made.snapshot.manifest.writer_version
        libraries[writer.library if writer else ""] += 1
        operations[name] += 1
        changes.append(change)
        before = now
    return History(operations, libraries, changes, before)


def _kind_of_change(before: int | None, after: int | None) -> str:
    return "rows added" if before is None else "rows removed" if after is None else "values changed"


def check_history(history: History, logs: Mapping[int, Log]) -> None:
    """Assert that each acknowledged change is in one version, in its writer's order, and an unknown one in at most one.

    No failed change is in a version, and every change in a version is in a log.
    """
    made: dict[int, list[Change]] = {writer: [] for writer in logs}
    for change in filter(None, history.changes):
        writers = {writer for (writer, _), _ in change}
        assert len(writers) == 1, f"one version has changes of writers {writers}"
        made[writers.pop()].append(change)
    for writer, log in logs.items():
        expected = [
            entry.change
            for entry in log
            if entry.outcome == "acknowledged" or (entry.outcome != "failed" and entry.change in made[writer])
        ]
        assert made[writer] == list(filter(None, expected)), f"versions of writer {writer}"


def check_rows(table: Table, logs: Mapping[int, Log]) -> None:
    """Assert that the table has every acknowledged change and no failed one."""
    allowed = {row: values for log in logs.values() for row, values in _allowed(log).items()}
    wrong = {row: (table.get(row), values) for row, values in allowed.items() if table.get(row) not in values}
    assert not wrong, f"rows with wrong values, and their allowed values: {wrong}"
    assert not table.keys() - allowed.keys(), f"rows that nobody wrote: {table.keys() - allowed.keys()}"


def table_of(rows: pa.Table) -> Table:
    """Return values by row; assert that no row appears twice."""
    columns: dict[str, list[int]] = rows.to_pydict()
    table = {
        (writer, row): value
        for writer, row, value in zip(columns["writer"], columns["row"], columns["value"], strict=True)
    }
    assert len(table) == rows.num_rows, "rows appear more than once"
    return table


def _allowed(log: Log) -> dict[Row, set[int | None]]:
    """Return the values that each row of a writer may have now, None for absent."""
    allowed: dict[Row, set[int | None]] = {}
    for entry in log:
        for row, value in entry.change:
            values = allowed.setdefault(row, {None})
            if entry.outcome == "acknowledged":
                allowed[row] = {value}
            elif entry.outcome != "failed":
                values.add(value)
    return allowed


def _copy(dataset: lance_ops.LanceDataset, folder: Path) -> None:
    source, target = dataset.snapshot.store, LocalStore(str(folder))

    def paths() -> Iterator[str]:
        return (found.path for found in source.list())

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for _ in threads.map(lambda path: target.put(path, source.get(path), durable=False), paths()):
            pass
