"""Read a table's history from its retained versions, and keep it as JSON beside the generated ones.

    {"name": …, "what": …, "has_index": …, "start": [[live, deleted], …],
     "days": [{"appends": [rows, …], "deleted_share": …}, …]}

A history begins with the newest version that replaced all rows; before it, other rows were there. The newest version
says whether the table has an index, and then the index is there from the start. Compactions and index builds are left
out, because the simulation decides them. Of versions that clean-up has removed, the difference between their neighbours
is known: it counts as one append or as deleted rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

from lance_ops import LanceDataset, LanceOperation
from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.snapshot import Snapshot
from tests.bench.policy.histories import Day, History
from tests.bench.policy.table_state import Stored, TableState

__all__ = ["FOLDER", "load", "record", "recorded", "save"]

FOLDER = Path(__file__).parent / "recorded"
"""The histories of `docs/policy.md`; each says where it was recorded."""

_READS_PER_DAY = 100
"""A table does not record how often it is read."""


def record(table: LanceDataset, name: str, what: str, *, rehearsed: bool = False) -> History:
    """Return the history of a table, by the days on which its versions were committed.

    In a rehearsal, which is faster than life, each version that writes or deletes rows is a day of its own.
    Raises `InvalidInput` if no retained version says what was written after the table began.
    """
    versions = _since_the_rows_were_replaced(table)
    first, last = versions[0].snapshot, versions[-1].snapshot
    days: dict[int, list[_Written]] = {}
    for before, after in pairwise(versions):
        written = _Written.between(before, after)
        if written.appends or written.num_deleted:
            number = len(days) if rehearsed else (after.committed - versions[0].committed).days
            days.setdefault(number, []).append(written)
    if not days:
        raise InvalidInput(
            f"{table.uri}: no version after {first.version} writes or deletes rows: record a table that retains them"
        )
    live = [(first.num_live_rows(each), each.physical_rows) for each in first.fragments]
    start = TableState(tuple(Stored(rows, physical - rows) for rows, physical in live))
    start = start.reindexed() if last.manifest.indices else start
    return History(name, what, start, tuple(_days(days, first.num_rows)), _READS_PER_DAY, is_recorded=True)


def save(history: History, folder: Path = FOLDER) -> Path:
    """Write a history as JSON, and return the file."""
    content = {
        "name": history.name,
        "what": history.what,
        "has_index": history.start.has_index,
        "start": [[each.live, each.deleted] for each in history.start.fragments],
        "days": [{"appends": list(day.appends), "deleted_share": day.deleted_share} for day in history.days],
    }
    folder.mkdir(exist_ok=True)
    path = folder / f"{history.name}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def load(path: Path) -> History:
    """Read a history; raise `CorruptFile` for one that `save` did not write."""
    try:
        content = json.loads(path.read_text())
        start = TableState(tuple(Stored(int(live), int(deleted)) for live, deleted in content["start"]))
        start = start.reindexed() if content["has_index"] else start
        days = tuple(map(_day, content["days"]))
        name, what = str(content["name"]), str(content["what"])
        return History(name, what, start, days, _READS_PER_DAY, is_recorded=True)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFile(str(path), "recorded history", f"{error!r}; record it again") from error


def recorded() -> list[History]:
    """Return the recorded histories by name."""
    return [load(path) for path in sorted(FOLDER.glob("*.json"))]


@dataclass(frozen=True)
class _Version:
    snapshot: Snapshot
    committed: date
    operation: object


@dataclass(frozen=True)
class _Written:
    """The rows of the fragments that a version added, and how many rows it deleted."""

    appends: tuple[int, ...]
    num_deleted: int

    @classmethod
    def between(cls, before: _Version, after: _Version) -> _Written:
        """Compare two versions that follow each other among those retained."""
        old, new = before.snapshot, after.snapshot
        grown = new.num_rows - old.num_rows
        if new.version != old.version + 1 or isinstance(after.operation, LanceOperation.Rewrite):
            return cls((grown,) if grown > 0 else (), max(-grown, 0))
        known = {each.id for each in old.fragments}
        appends = tuple(each.physical_rows for each in new.fragments if each.id not in known)
        return cls(appends, sum(appends) - grown)


def _since_the_rows_were_replaced(table: LanceDataset) -> list[_Version]:
    found: list[_Version] = []
    for snapshot in map(table.snapshot.at, table.snapshot.committer.versions()):
        if snapshot.manifest.timestamp is None:
            raise InvalidInput(f"{table.uri}: version {snapshot.version} has no timestamp: record another table")
        transaction = table.read_transaction(snapshot.version)
        operation = None if transaction is None else transaction.operation
        if isinstance(operation, LanceOperation.Overwrite | LanceOperation.Restore):
            found.clear()
        found.append(_Version(snapshot, snapshot.manifest.timestamp.date(), operation))
    return found


def _days(written: Mapping[int, Sequence[_Written]], num_rows: int) -> list[Day]:
    """Return every day to the last one; the share of a day is that of the rows after its appends."""
    days = []
    for number in range(max(written) + 1):
        appends = tuple(rows for each in written.get(number, ()) for rows in each.appends)
        num_deleted = sum(each.num_deleted for each in written.get(number, ()))
        num_rows += sum(appends)
        days.append(Day(appends, num_deleted / num_rows if num_rows else 0.0))
        num_rows -= num_deleted
    return days


def _day(content: dict[str, Any]) -> Day:
    return Day(tuple(map(int, content["appends"])), float(content["deleted_share"]))
