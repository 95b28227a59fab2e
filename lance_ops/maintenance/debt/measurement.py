"""Measure a version's debt and price it; no data file is read."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from lance_ops.core.records import dataclass
from lance_ops.maintenance.debt.dues import Due, dues_of
from lance_ops.maintenance.debt.inventory import Inventory, take_inventory
from lance_ops.maintenance.debt.past_costs import PastCosts
from lance_ops.maintenance.debt.policy import DebtPolicy
from lance_ops.maintenance.debt.rewrites import FragmentSize, fragment_sizes
from lance_ops.maintenance.debt.step_kinds import StepKind
from lance_ops.maintenance.health import HealthReport, health
from lance_ops.snapshot import Snapshot

__all__ = ["ReadCost", "TableDebt", "measure_debt", "price_debt", "read_cost"]


@dataclass(frozen=True)
class ReadCost:
    """What one read of a whole version costs in bytes, and what it would cost without debt."""

    actual_bytes: int
    ideal_bytes: int

    @property
    def amplification(self) -> float:
        """How many times as much a read costs as it would without debt; 1.0 at best."""
        return self.actual_bytes / self.ideal_bytes if self.ideal_bytes else 1.0


@dataclass(frozen=True)
class TableDebt:
    """The debt of one version, and its price in bytes; see `rates.py` for the formulas.

    `read_bytes` is what one read of the whole table costs now, `ideal_read_bytes` what it would cost without debt.
    `score` is the gain of what is owed for each byte that paying costs; tables are ranked by it.
    `verified_at` is when the table's checksums were last verified, if the caller knows.
    """

    uri: str
    version: int
    measured_at: datetime
    health: HealthReport
    inventory: Inventory
    read_bytes: int
    ideal_read_bytes: int
    dues: tuple[Due, ...]
    score: float
    verified_at: datetime | None = None

    @property
    def read_amplification(self) -> float:
        """How many times as much a read costs as it would without debt; 1.0 at best."""
        return ReadCost(self.read_bytes, self.ideal_read_bytes).amplification

    @property
    def owed(self) -> tuple[Due, ...]:
        """The steps that are owed, in their order."""
        return tuple(due for due in self.dues if due.is_owed)

    @property
    def rewrite_bytes(self) -> int:
        """The bytes that all steps which are owed would read and write again."""
        return sum(due.cost_bytes for due in self.owed)

    def due(self, key: str) -> Due | None:
        """Return a due by its key."""
        return next((due for due in self.dues if due.key == key), None)


def measure_debt(
    snapshot: Snapshot,
    policy: DebtPolicy | None = None,
    *,
    orphans: bool = False,
    verified_at: datetime | None = None,
    now: datetime | None = None,
    past_costs: PastCosts | None = None,
) -> TableDebt:
    """Measure a version from its manifest and a few listings; with `orphans`, list all files of the table.

    Prices are corrected by `past_costs`, which the last `Payment` of the table left.
    Raises what `take_inventory` and `plan_compaction` raise, except `UnsupportedFeature`, which blocks a due.
    """
    policy = policy or DebtPolicy()
    now = datetime.now(UTC) if now is None else now
    inventory = take_inventory(snapshot, policy.cleanup, now, orphans=orphans)
    return price_debt(snapshot, policy, inventory, now, verified_at, past_costs)


def price_debt(
    snapshot: Snapshot,
    policy: DebtPolicy,
    inventory: Inventory,
    measured_at: datetime,
    verified_at: datetime | None = None,
    past_costs: PastCosts | None = None,
) -> TableDebt:
    """Price a version's debt, given what lies beneath its root."""
    report = health(snapshot, policy.limits, policy.compaction.max_bytes_per_file)
    sizes = fragment_sizes(snapshot)
    reading = _read_cost(sizes.values(), policy)
    dues = tuple(dues_of(snapshot, policy, report, sizes, inventory, past_costs or PastCosts()))
    owed = [due for due in dues if due.is_owed]
    gain = sum(due.gain_bytes + due.freed_bytes / policy.rates.payback_reads for due in owed)
    return TableDebt(
        uri=snapshot.uri,
        version=snapshot.version,
        measured_at=measured_at,
        health=report,
        inventory=inventory,
        read_bytes=reading.actual_bytes,
        ideal_read_bytes=reading.ideal_bytes,
        dues=tuple(sorted(dues, key=lambda due: list(StepKind).index(due.kind))),
        score=policy.rates.score(gain, sum(due.cost_bytes for due in owed)),
        verified_at=verified_at,
    )


def read_cost(snapshot: Snapshot, policy: DebtPolicy) -> ReadCost:
    """Return what a read of a version costs, from its manifest alone."""
    return _read_cost(fragment_sizes(snapshot).values(), policy)


def _read_cost(sizes: Collection[FragmentSize], policy: DebtPolicy) -> ReadCost:
    stored, deleted = sum(each.size_bytes for each in sizes), sum(each.deleted_bytes for each in sizes)
    num_ideal = -(-sum(each.num_live_rows for each in sizes) // policy.compaction.target_rows_per_fragment)
    rates = policy.rates
    return ReadCost(round(rates.read_cost(stored, len(sizes))), round(rates.read_cost(stored - deleted, num_ideal)))
