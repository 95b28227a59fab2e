"""Say which debt is owed: the targets of the steps, the rates, and the limits that must hold whatever a step costs."""

from __future__ import annotations

from dataclasses import field

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.maintenance.cleanup import CleanupOptions
from lance_ops.maintenance.compaction import CompactionOptions
from lance_ops.maintenance.debt.rates import Rates
from lance_ops.maintenance.health import HealthThresholds

__all__ = ["DebtPolicy", "WantedIndex"]


@dataclass(frozen=True)
class WantedIndex:
    """An index that a table should have."""

    name: str
    column: str
    type_name: str = "BTREE"


@dataclass(frozen=True)
class DebtPolicy:
    """A step is owed if it pays back within the rates, or if a measure is beyond its limit and the step lowers it.

    Existing indices are extended; `indices` are built if they are missing. Clean-up is owed from
    `min_removable_versions` on. Tagged versions always stay.
    """

    rates: Rates = field(default_factory=Rates)
    limits: HealthThresholds = field(default_factory=HealthThresholds)
    compaction: CompactionOptions = field(default_factory=CompactionOptions)
    cleanup: CleanupOptions = field(default_factory=CleanupOptions)
    indices: tuple[WantedIndex, ...] = ()
    min_removable_versions: int = 20

    def __post_init__(self) -> None:
        if self.compaction.cluster_by:
            raise InvalidInput("compaction.cluster_by sorts the whole table: debt is paid by compactions without it")
        if self.min_removable_versions < 1:
            raise InvalidInput(f"min_removable_versions must be at least 1, not {self.min_removable_versions}")
