"""Correct the prices of a table's compactions by what its last ones cost.

    ratio of a kind     measured bytes / estimated bytes of its last steps, at least 1/4 and at most 4
    corrected price     estimated bytes * ratio

Two sums for each kind of step are kept, whatever the number of steps: with each further step the earlier ones count
half. The sums are of bytes, so a large step weighs more than a small one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field

from lance_ops.core.records import dataclass
from lance_ops.maintenance.debt.step_kinds import StepKind

__all__ = ["PastCosts"]

_BOUND = 4.0
_DECAY = 0.5


@dataclass(frozen=True)
class PastCosts:
    """For each kind of step, what its last steps on one table were estimated to cost, and what they cost, in bytes."""

    sums: Mapping[StepKind, tuple[float, float]] = field(default_factory=dict)

    def ratio(self, kind: StepKind) -> float:
        """Return how many times its estimate a step costs; 1 if nothing is known."""
        estimated, measured = self.sums.get(kind, (0.0, 0.0))
        return min(max(measured / estimated, 1 / _BOUND), _BOUND) if estimated else 1.0

    def with_step(self, kind: StepKind, estimated_bytes: float, measured_bytes: int) -> PastCosts:
        """Return the sums after one more step; its estimate is its price before the correction."""
        if estimated_bytes <= 0 or measured_bytes <= 0:
            return self
        estimated, measured = self.sums.get(kind, (0.0, 0.0))
        return PastCosts(
            {**self.sums, kind: (_DECAY * estimated + estimated_bytes, _DECAY * measured + measured_bytes)}
        )

    def to_facts(self) -> dict[str, list[int]]:
        """Return the sums as JSON keeps them: `{"compact": [estimated, measured]}`."""
        return {kind.value: [round(estimated), round(measured)] for kind, (estimated, measured) in self.sums.items()}

    @classmethod
    def from_facts(cls, facts: object) -> PastCosts:
        """Return what `to_facts` gave; an entry that it cannot have given is ignored."""
        return cls(dict(_usable(facts)) if isinstance(facts, dict) else {})


def _usable(facts: Mapping[object, object]) -> Iterator[tuple[StepKind, tuple[float, float]]]:
    for kind in StepKind:
        match facts.get(kind.value):
            case [int() | float() as estimated, int() | float() as measured] if _are_sizes(estimated, measured):
                yield kind, (float(estimated), float(measured))


def _are_sizes(*numbers: float) -> bool:
    return all(not isinstance(each, bool) and 0 < each < math.inf for each in numbers)
