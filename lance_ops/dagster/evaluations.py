"""Record the evaluation of an asset check as an event of its run, or return it from the function of the check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg

__all__ = ["check_result_of", "log_evaluation"]


def log_evaluation(
    context: dg.OpExecutionContext | dg.AssetExecutionContext, evaluation: dg.AssetCheckEvaluation
) -> None:
    """Log an evaluation, so that it links to the run.

    If the run planned the check, Dagster shows this evaluation as the check's result in the run.
    `log_event` handles evaluations, but its annotation does not list them.
    """
    log: Callable[[Any], None] = context.log_event
    log(evaluation)


def check_result_of(evaluation: dg.AssetCheckEvaluation) -> dg.AssetCheckResult:
    """Return what a check's function returns for an evaluation."""
    return dg.AssetCheckResult(
        passed=evaluation.passed,
        check_name=evaluation.check_name,
        severity=evaluation.severity,
        description=evaluation.description,
        metadata=dict(evaluation.metadata),
    )
