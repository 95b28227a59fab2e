"""Verify files in a run of upkeep, when this is due, with what the other steps leave of the budget.

The run records the verification as an evaluation of the check `intact`, as every other verification of the dataset
does. Runs continue one another until a pass over all files has ended.
"""

from __future__ import annotations

from typing import Any

import dagster as dg

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.records import dataclass
from lance_ops.dagster.evaluations import log_evaluation
from lance_ops.dagster.head import VERIFY, verification_due, verify_within
from lance_ops.dagster.ops import Work

__all__ = ["UpkeepVerification", "verify_if_due"]

_FAILURES = (LanceOpsError, OSError, ValueError)
"""What a store or a damaged file raises; a run records its other steps all the same."""


@dataclass(frozen=True)
class UpkeepVerification:
    """What a run of upkeep verified: nothing if it was not due, if the budget was spent, or after an error."""

    size_bytes: int = 0
    is_waiting: bool = False
    evaluation: dg.AssetCheckEvaluation | None = None
    found_damage: bool = False
    error: Exception | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """The verification as a step that was taken."""
        return () if self.evaluation is None else (f"- {VERIFY}: {self.evaluation.description}",)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The verification as a step for which the budget did not reach."""
        return (VERIFY,) if self.is_waiting else ()

    def raise_for_problem(self, metadata: dict[str, Any]) -> None:
        """Raise the error that ended the verification, or fail the run for a damage."""
        if self.error is not None:
            raise self.error
        if self.evaluation is not None and self.found_damage:
            raise dg.Failure(self.evaluation.description, metadata=metadata, allow_retries=False)


def verify_if_due(work: Work, left_bytes: int | None) -> UpkeepVerification:
    """Verify the next parts of the newest version if this is due; `left_bytes` is None if nothing bounds them.

    A run also keeps to `maintenance.verification.max_megabytes`. An error is returned, so that the run records first
    what its other steps have done.
    """
    try:
        return _verify_if_due(work, left_bytes)
    except _FAILURES as error:
        return UpkeepVerification(error=error)


def _verify_if_due(work: Work, left_bytes: int | None) -> UpkeepVerification:
    due = verification_due(work.context.instance, work.config, work.snapshot.latest())
    if due is None or not due.is_owed:
        return UpkeepVerification()
    if left_bytes == 0:
        return UpkeepVerification(is_waiting=True)
    declared = work.config.maintenance.verification.max_megabytes
    bounds = [left_bytes, None if declared is None else declared * 1024**2]
    bound = min((each for each in bounds if each is not None), default=None)
    report, evaluation = verify_within(work.context.instance, work.config, work.runner, bound)
    log_evaluation(work.context, evaluation)
    return UpkeepVerification(report.size_bytes, evaluation=evaluation, found_damage=not report.ok)
