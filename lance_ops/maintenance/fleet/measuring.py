"""Measure the debts of a fleet's tables from metadata alone, many at a time.

An error of one table is a reason in place of its debt. It is the table's own fault, or may be one of the store or of
the credentials, which all tables share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field

from lance_ops.core.errors import CommitConflict, CorruptFile, LanceOpsError, ObjectNotFound, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.maintenance.debt import DebtPolicy, PastCosts, TableDebt, measure_debt
from lance_ops.maintenance.fleet.discovery import ROOT_ITSELF, find_tables
from lance_ops.maintenance.fleet.ledger import Ledger
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import open_store

__all__ = ["FAILURES", "MeasureTable", "Measured", "is_own_fault", "measure_fleet", "measure_tables", "table_uri"]

FAILURES = (LanceOpsError, OSError, ValueError)
"""What one table of many may raise: hostile or damaged files are not always told by an error of this library."""
_OWN_FAULTS = (CorruptFile, UnsupportedFeature, CommitConflict, ObjectNotFound)
"""Errors that the table causes: a damage, a lost race, a file that is gone."""


@dataclass(frozen=True)
class Measured:
    """A table's debt, or the reason why it cannot be measured, and whether that is a fault of this table alone."""

    table: str
    debt: TableDebt | None
    reason: str | None = None
    is_own_fault: bool = False


@dataclass(frozen=True)
class MeasureTable:
    """Measures one table of a fleet, and prices its debt by its past costs; a task."""

    root: str
    policy: DebtPolicy
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    past_costs: Mapping[str, PastCosts] = field(default_factory=dict)

    @classmethod
    def of(cls, root: str, policy: DebtPolicy, storage_options: Mapping[str, str], ledger: Ledger) -> MeasureTable:
        """Return what measures the tables beneath a root by the costs that a ledger remembers."""
        past_costs = {table: PastCosts.from_facts(record.past_costs) for table, record in ledger.tables.items()}
        return cls(root, policy, storage_options, past_costs)

    def __call__(self, table: str) -> Measured:
        """Return the table's debt; an error becomes a reason."""
        try:
            snapshot = Snapshot.open(table_uri(self.root, table), storage_options=self.storage_options)
            return Measured(table, measure_debt(snapshot, self.policy, past_costs=self.past_costs.get(table)))
        except FAILURES as error:
            return Measured(table, None, str(error), is_own_fault(error))


def measure_fleet(
    root: str,
    policy: DebtPolicy | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    runner: Runner | None = None,
) -> list[Measured]:
    """Measure the tables beneath a root: first those that cannot be measured, then the worst debt first."""
    options, ledger = dict(storage_options or {}), Ledger()
    with suppress(*FAILURES):  # `maintain` tells that a ledger is damaged
        ledger = Ledger.load(open_store(root, options))
    measure = MeasureTable.of(root, policy or DebtPolicy(), options, ledger)
    found = measure_tables(measure, find_tables(root, options), runner or InThreads())
    return sorted(found, key=lambda each: (each.debt is not None, -each.debt.score if each.debt else 0.0, each.table))


def measure_tables(measure: MeasureTable, tables: Sequence[str], runner: Runner) -> list[Measured]:
    """Measure some tables of a fleet by the runner's tasks."""
    return runner.map(measure, tables, Job.on("measure tables of", measure.root)) if tables else []


def table_uri(root: str, table: str) -> str:
    """Return the URI of a table of a fleet."""
    return root if table == ROOT_ITSELF else f"{root.rstrip('/')}/{table}"


def is_own_fault(error: BaseException | None) -> bool:
    """Return whether a table itself causes an error. Another error may come from the store, which all tables share."""
    return isinstance(error, _OWN_FAULTS) or (isinstance(error, ValueError) and not isinstance(error, LanceOpsError))
