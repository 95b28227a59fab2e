"""Record the evaluation of an asset check as an event of its run, or return it from the function of the check.

A run that fails evaluates its checks itself, because Dagster then runs none of their steps. A check that cannot look at
the table warns and says why: Dagster would show it as not executed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import dagster as dg

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.records import dataclass

__all__ = [
    "CAUSES",
    "LOOKED",
    "CheckEvaluator",
    "causes_of_red",
    "check_result_of",
    "log_evaluation",
    "not_looked_warning",
]

CAUSES = "lance/causes"
"""The metadata of a check's evaluation that lists what makes it red, such as tables: a new one is told of."""

_MOST_CAUSES = 1000

LOOKED = "lance/looked"
"""Metadata of an evaluation: false if the check could not look."""


@dataclass(frozen=True)
class CheckEvaluator:
    """What evaluates some checks of an asset together, by their names."""

    names: Collection[str]
    evaluate: Callable[[], Iterable[dg.AssetCheckEvaluation]]

    def evaluate_or_warn(self, asset: dg.AssetKey) -> list[dg.AssetCheckEvaluation]:
        """Return the evaluations or, if evaluating raises, one warning for each check."""
        try:
            return list(self.evaluate())
        except Exception as error:  # noqa: BLE001 - the run fails for another reason, whatever fails here
            # An error of the operating system may quote what is secret; errors of this library do not.
            why = str(error) if isinstance(error, LanceOpsError) else type(error).__name__
            return [not_looked_warning(asset, name, why) for name in self.names]


def causes_of_red(causes: Iterable[str]) -> dict[str, dg.MetadataValue[Any]]:
    """Return the metadata that lists what makes a check red; it is empty without causes.

    The text of a cause must be the same in each evaluation, because alerts compare it.
    """
    listed = sorted(set(causes))[:_MOST_CAUSES]
    return {CAUSES: dg.MetadataValue.json(listed)} if listed else {}


def not_looked_warning(asset: dg.AssetKey, name: str, why: str) -> dg.AssetCheckEvaluation:
    """Return a warning of a check that could not look at the asset."""
    return dg.AssetCheckEvaluation(
        asset,
        name,
        False,
        {LOOKED: False},
        severity=dg.AssetCheckSeverity.WARN,
        description=f"not looked at, because {why}",
    )


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
