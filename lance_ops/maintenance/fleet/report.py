"""What a night of maintenance did to each table of a fleet, and what it saved."""

from __future__ import annotations

from enum import Enum

from lance_ops.core.records import dataclass

__all__ = ["FleetReport", "FleetStatus", "TableOutcome"]


class FleetStatus(Enum):
    """How a night ended for one table. A dry run leaves `PLANNED` instead of `DONE`.

    `VANISHED`: the table was removed after the night began. This is not a failure. `LEFT_OUT`: it is not for this fleet
    to maintain.
    """

    DONE = "done"
    PLANNED = "planned"
    NOTHING_OWED = "nothing owed"
    WAITING = "waiting"
    FAILED = "failed"
    VANISHED = "vanished"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class TableOutcome:
    """One table: its debt before and after, and what was done. A table that cannot be opened has no numbers.

    `spent_bytes` is what the steps cost by their prices, `moved_bytes` what its compactions moved as measured.
    `saved_read_bytes` is what each read of the whole table costs less than before; what look-ups gain is not in it.
    """

    table: str
    status: FleetStatus
    score: float = 0.0
    num_fragments_before: int = 0
    num_fragments_after: int = 0
    amplification_before: float = 1.0
    amplification_after: float = 1.0
    spent_bytes: int = 0
    saved_read_bytes: int = 0
    steps: tuple[str, ...] = ()
    reason: str | None = None
    moved_bytes: int = 0


@dataclass(frozen=True)
class FleetReport:
    """All tables of a fleet: those that could not be measured, then the worst debt first, then those left out."""

    root: str
    outcomes: tuple[TableOutcome, ...]
    failure_threshold: float
    dry_run: bool

    def count(self, status: FleetStatus) -> int:
        """Return how many tables ended so."""
        return sum(outcome.status is status for outcome in self.outcomes)

    @property
    def num_tables(self) -> int:
        """How many tables are for this fleet to maintain: all that were not left out."""
        return len(self.outcomes) - self.count(FleetStatus.LEFT_OUT)

    @property
    def spent_bytes(self) -> int:
        """The bytes that were rewritten, by their prices; for a dry run those that would be."""
        return sum(outcome.spent_bytes for outcome in self.outcomes)

    @property
    def moved_bytes(self) -> int:
        """The bytes that compactions moved, as measured: the mean of those that they replaced and added."""
        return sum(outcome.moved_bytes for outcome in self.outcomes)

    @property
    def saved_read_bytes(self) -> int:
        """What one read of every table costs less than before."""
        return sum(outcome.saved_read_bytes for outcome in self.outcomes)

    @property
    def failed_ratio(self) -> float:
        """The share of `num_tables` that failed."""
        return self.count(FleetStatus.FAILED) / self.num_tables if self.num_tables else 0.0

    @property
    def ok(self) -> bool:
        """Whether at most the tolerated share of the tables failed."""
        return self.failed_ratio <= self.failure_threshold

    @property
    def sentence(self) -> str:
        """The night in words."""
        counts = {status: self.count(status) for status in FleetStatus if self.count(status)}
        num_left_out = counts.pop(FleetStatus.LEFT_OUT, 0)
        told = ", ".join(f"{count} {status.value}" for status, count in counts.items()) or "none"
        others = f"; {num_left_out} more left out" if num_left_out else ""
        return f"{self.num_tables} tables beneath {self.root}: {told}{others}"
