"""What the logs of all writers allow the table to be, and what its own history says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import lance_ops

__all__ = ["check_history", "check_rows", "outcomes"]

Row = tuple[int, int]
"""Writer and number of the row."""
Table = Mapping[Row, int]
_MAY = {"Append": "rows came", "Delete": "rows went", "Update": "values changed"}
"""What operations do to rows; all others do nothing to them."""


def check_rows(rows: Sequence[tuple[int, int, int]], logs: Mapping[int, Path]) -> None:
    """Assert that each acknowledged change is in the table once, each failed one not, each unknown one at most once."""
    seen = Counter((writer, row) for writer, row, _ in rows)
    assert not [row for row, times in seen.items() if times > 1], "rows that are there more than once"
    table = {(writer, row): value for writer, row, value in rows}
    allowed = {(writer, row): values for writer, log in logs.items() for row, values in _allowed(log).items()}
    wrong = {row: (table.get(row), values) for row, values in allowed.items() if table.get(row) not in values}
    assert not wrong, "rows and what they might have been"
    assert not table.keys() - allowed.keys(), "rows that nobody wrote"


def check_history(dataset: lance_ops.LanceDataset) -> Counter[str]:
    """Assert that versions have no gap and that each changed rows as its operation may; return the operations."""
    versions = [version["version"] for version in dataset.versions()]
    assert versions == list(range(1, dataset.version + 1))
    operations: Counter[str] = Counter()
    before: Table = {}
    for version in versions:
        transaction = dataset.read_transaction(version)
        assert transaction is not None, f"version {version} has no transaction"
        name = type(transaction.operation).__name__
        operations[name] += 1
        now = _read(dataset.checkout_version(version))
        did = {
            "rows went": bool(before.keys() - now.keys()),
            "rows came": bool(now.keys() - before.keys()),
            "values changed": any(before[row] != now[row] for row in before.keys() & now.keys()),
        }
        wrong = [deed for deed, done in did.items() if done and deed != _MAY.get(name)]
        assert not wrong, f"version {version}, {name}: {wrong}"
        before = now
    return operations


def outcomes(logs: Iterable[Path]) -> Counter[str]:
    """Return how many commits ended how."""
    return Counter(entry.outcome for log in logs for entry in _entries(log) if entry.outcome != "begun")


def _allowed(log: Path) -> dict[int, set[int | None]]:
    """Return what each row that a writer touched may be now. What its last words say it began may have landed."""
    allowed: dict[int, set[int | None]] = {}
    entries = _entries(log)
    for entry in entries:
        for row, value in entry.changes:
            known = allowed.setdefault(row, {None})
            if entry.outcome == "acknowledged":
                allowed[row] = {value}
            elif entry.outcome == "unknown" or (entry.outcome == "begun" and entry is entries[-1]):
                known.add(value)
    return allowed


@dataclass(frozen=True)
class _Entry:
    outcome: str
    changes: list[tuple[int, int | None]]


def _entries(log: Path) -> list[_Entry]:
    return [_Entry(**json.loads(line)) for line in log.read_text().splitlines()]


def _read(dataset: lance_ops.LanceDataset) -> Table:
    rows = dataset.to_table().to_pydict()
    table = {
        (writer, row): value for writer, row, value in zip(rows["writer"], rows["row"], rows["value"], strict=True)
    }
    assert len(table) == len(rows["row"]), f"version {dataset.version} has a row twice"
    return table
