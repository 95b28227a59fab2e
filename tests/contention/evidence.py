"""What the logs of all writers allow the table to be, and what its own history says."""

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

__all__ = ["Entry", "History", "Log", "check_history", "check_rows", "read_history", "read_log", "table_of"]

Row = tuple[int, int]
"""Writer and number of the row."""
Table = Mapping[Row, int]
Change = frozenset[tuple[Row, int | None]]
"""Rows and what became of them, None for gone."""
_MAY = {"Append": "rows came", "Delete": "rows went", "Update": "values changed"}
"""What operations do to rows; all others do nothing to them."""
_AT_ONCE = 16


@dataclass(frozen=True)
class Entry:
    """One commit that a writer began, and how it ended; `begun` if the log does not say."""

    outcome: str
    change: Change


Log = Sequence[Entry]


@dataclass(frozen=True)
class History:
    """The versions after the first: what each did, to which rows, and by which library; and the rows in the end."""

    operations: Counter[str]
    libraries: Counter[str]
    changes: Sequence[Change]
    table: Table


def read_log(path: Path, writer: int) -> Log:
    """Return the commits of a writer in the order it made them."""
    entries: list[Entry] = []
    for line in path.read_text().splitlines():
        said = json.loads(line)
        entry = Entry(said["outcome"], frozenset(((writer, row), value) for row, value in said["changes"]))
        if entries and entries[-1].outcome == "begun":
            entries.pop()
        entries.append(entry)
    return entries


def read_history(dataset: lance_ops.LanceDataset, folder: Path) -> History:
    """Read every version; assert that none is missing, and that each changed rows as its operation may.

    They are read from a copy of all files in `folder`, so that a file of many versions is asked for once.
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
        wrong = {deed for row, value in change if (deed := _deed(before.get(row), value)) != _MAY.get(name)}
        assert not wrong, f"version {version}, {name}: {wrong}"
        writer = made.snapshot.manifest.writer_version
        libraries[writer.library if writer else ""] += 1
        operations[name] += 1
        changes.append(change)
        before = now
    return History(operations, libraries, changes, before)


def _deed(before: int | None, after: int | None) -> str:
    return "rows came" if before is None else "rows went" if after is None else "values changed"


def check_history(history: History, logs: Mapping[int, Log]) -> None:
    """Assert that each acknowledged change is one version's, in its writer's order, each unknown one at most one's.

    No failed one is, and no version changed anything that nobody wrote.
    """
    made: dict[int, list[Change]] = {writer: [] for writer in logs}
    for change in filter(None, history.changes):
        writers = {writer for (writer, _), _ in change}
        assert len(writers) == 1, f"one version of writers {writers}"
        made[writers.pop()].append(change)
    for writer, log in logs.items():
        landed = [
            entry.change
            for entry in log
            if entry.outcome == "acknowledged" or (entry.outcome != "failed" and entry.change in made[writer])
        ]
        assert made[writer] == list(filter(None, landed)), f"versions of writer {writer}"


def check_rows(table: Table, logs: Mapping[int, Log]) -> None:
    """Assert that each acknowledged change is in the table, each failed one not."""
    allowed = {row: values for log in logs.values() for row, values in _allowed(log).items()}
    wrong = {row: (table.get(row), values) for row, values in allowed.items() if table.get(row) not in values}
    assert not wrong, f"rows and what they might have been: {wrong}"
    assert not table.keys() - allowed.keys(), f"rows that nobody wrote: {table.keys() - allowed.keys()}"


def table_of(rows: pa.Table) -> Table:
    """Return rows by their names. Asserts that none is there twice."""
    columns: dict[str, list[int]] = rows.to_pydict()
    table = {
        (writer, row): value
        for writer, row, value in zip(columns["writer"], columns["row"], columns["value"], strict=True)
    }
    assert len(table) == rows.num_rows, "rows that are there more than once"
    return table


def _allowed(log: Log) -> dict[Row, set[int | None]]:
    """Return what each row that a writer touched may be now."""
    allowed: dict[Row, set[int | None]] = {}
    for entry in log:
        for row, value in entry.change:
            known = allowed.setdefault(row, {None})
            if entry.outcome == "acknowledged":
                allowed[row] = {value}
            elif entry.outcome != "failed":
                known.add(value)
    return allowed


def _copy(dataset: lance_ops.LanceDataset, folder: Path) -> None:
    source, target = dataset.snapshot.store, LocalStore(str(folder))

    def paths() -> Iterator[str]:
        return (found.path for found in source.list())

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for _ in threads.map(lambda path: target.put(path, source.get(path), durable=False), paths()):
            pass
