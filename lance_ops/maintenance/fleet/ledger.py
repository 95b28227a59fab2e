"""Remember, for each table, which steps gained nothing, what steps cost, and where verification continues.

The ledger is one JSON object beneath the fleet's root:

    _fleet/ledger.json      {"format": 1, "night": …, "spent_bytes": …, "tables": {path: {…}}}

The ledger only saves work: without it, a fleet tries again what gained nothing, prices steps by their bytes alone, and
verifies from the beginning.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, field, replace
from datetime import datetime
from typing import Any

from lance_ops.core.errors import CorruptFile, ObjectNotFound
from lance_ops.core.records import dataclass
from lance_ops.maintenance.debt import PastCosts
from lance_ops.store import Store

__all__ = ["LEDGER_PATH", "Ledger", "TableRecord"]

LEDGER_PATH = "_fleet/ledger.json"
_FORMAT = 1


@dataclass(frozen=True)
class TableRecord:
    """What is known of one table: steps that gained nothing, what steps cost, and how far its files are verified.

    `verified_at` is the time (ISO 8601, UTC) at which a pass over all files last ended, whether or not it found
    damage. `next_part` is where the next verification continues.
    """

    fruitless: tuple[str, ...] = ()
    """Dated keys of steps that gained nothing, such as `v7 compact`."""
    verified_at: str | None = None
    next_part: int = 0
    past_costs: dict[str, list[int]] = field(default_factory=dict)
    """What `PastCosts.to_facts` gave."""

    @property
    def verified(self) -> datetime | None:
        """The time at which a pass over all files last ended."""
        return None if self.verified_at is None else datetime.fromisoformat(self.verified_at)


@dataclass(frozen=True)
class Ledger:
    """The records by path, and what has been spent of the budget of a night."""

    night: str | None = None
    spent_bytes: int = 0
    tables: dict[str, TableRecord] = field(default_factory=dict)

    def of(self, table: str) -> TableRecord:
        """Return a table's record; an empty one for a new table."""
        return self.tables.get(table, TableRecord())

    def with_table(self, table: str, record: TableRecord, spent_bytes: int = 0) -> Ledger:
        """Return the ledger with a table's record, and with more spent."""
        return replace(self, spent_bytes=self.spent_bytes + spent_bytes, tables={**self.tables, table: record})

    def only(self, tables: Collection[str]) -> Ledger:
        """Return the ledger with the records of these tables alone."""
        return replace(self, tables={table: self.tables[table] for table in tables if table in self.tables})

    def for_night(self, night: str | None) -> Ledger:
        """Return the ledger of a night: the same one if it is this night's, else with nothing spent."""
        return self if night is not None and night == self.night else replace(self, night=night, spent_bytes=0)

    def save(self, store: Store) -> None:
        """Replace the ledger beneath a fleet's root."""
        content = {"format": _FORMAT, **asdict(self)}
        store.put(LEDGER_PATH, json.dumps(content, indent=1).encode(), durable=False)

    @classmethod
    def load(cls, store: Store) -> Ledger:
        """Read the ledger, an empty one if there is none; raise `CorruptFile` for one that cannot be used."""
        try:
            data = bytes(store.get(LEDGER_PATH))
        except ObjectNotFound:
            return cls()
        try:
            content = json.loads(data)
            if content["format"] != _FORMAT:
                raise ValueError(f"format {content['format']} is unknown")
            tables = {str(path): _record(fields) for path, fields in content["tables"].items()}
            return cls(content["night"], int(content["spent_bytes"]), tables)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"{error}; remove the object, and the fleet begins a new one"
            raise CorruptFile(store.uri_of(LEDGER_PATH), "ledger of a fleet", reason) from error


def _record(fields: dict[str, Any]) -> TableRecord:
    verified_at = fields["verified_at"]
    if verified_at is not None:
        datetime.fromisoformat(verified_at)
    past_costs = PastCosts.from_facts(fields.get("past_costs")).to_facts()
    return TableRecord(tuple(map(str, fields["fruitless"])), verified_at, int(fields["next_part"]), past_costs)
