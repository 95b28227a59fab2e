"""Price debt and its payment in one unit: bytes that a reader or a rewrite moves.

    read cost of a version     stored bytes + fragments * open_cost_bytes
    gain of a step             read cost before - read cost after, for each read of the whole table
    gain of an index step      read cost of the rows that each look-up scans without it
    estimate of a step         stored bytes that it reads and replaces, counted once
    cost of a step             estimate * `PastCosts.ratio` of its kind on this table: `cost_bytes`
    a step pays back           gain * payback_reads >= cost + run_cost_bytes
    score of a step            gain / (cost + run_cost_bytes)

Opening a fragment costs about as much as reading a few MiB of it: requests for its footer and its column metadata
against the throughput of one stream. A run has a cost of its own (plans, commits, a new process), so that many tiny
steps are not worth more than one.
"""

from __future__ import annotations

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass

__all__ = ["Rates"]


@dataclass(frozen=True)
class Rates:
    """What opening a fragment and starting a run cost, in bytes, and how many reads of a table may pay a step back."""

    open_cost_bytes: int = 4 * 1024**2
    run_cost_bytes: int = 256 * 1024**2
    payback_reads: float = 10.0

    def __post_init__(self) -> None:
        if self.open_cost_bytes < 1 or self.run_cost_bytes < 1:
            raise InvalidInput("open_cost_bytes and run_cost_bytes must be at least 1")
        if not self.payback_reads > 0:
            raise InvalidInput(f"payback_reads must be positive, not {self.payback_reads}")

    def read_cost(self, size_bytes: float, num_fragments: int) -> float:
        """Return what one read of so many bytes in so many fragments costs, in bytes."""
        return size_bytes + num_fragments * self.open_cost_bytes

    def pays_back(self, gain_bytes: float, cost_bytes: float) -> bool:
        """Return whether the gains of `payback_reads` reads cover a step and its run."""
        return gain_bytes * self.payback_reads >= cost_bytes + self.run_cost_bytes

    def score(self, gain_bytes: float, cost_bytes: float) -> float:
        """Return the gain for each byte that a step costs; steps are ranked by it."""
        return gain_bytes / (cost_bytes + self.run_cost_bytes)
