"""Build the check that names the batches which were asked for and are not in the table.

A run that sets batches aside reports the check itself, because the steps after a failed one do not run. Later runs of
the check find what is settled since: a mended batch is in the table, and files that were removed are nobody's.
"""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

from collections.abc import Mapping
from typing import Any

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.landing.batch_report import batch_states
from lance_ops.dagster.landing.batch_state import BatchReport
from lance_ops.dagster.markdown import table

__all__ = ["UNSETTLED_BATCHES", "build_settled_check", "named_with_reasons", "settled_evaluation"]

UNSETTLED_BATCHES = "lance/unsettled_batches"
"""The metadata of the check's evaluations that names the first batches which need somebody, with the reasons."""

_NAME = "batches_settled"
_SHOWN = 20


def build_settled_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    """Return the check `batches_settled` of a dataset with a landing folder."""
    names = DatasetNames(config.name)
    config.landing()  # refuse a declaration without a landing folder now, not in the first run

    def batches_settled(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        report = batch_states(config, context.instance)
        unsettled = {batch.key: batch.reason for batch in report.unsettled}
        return dg.AssetCheckResult(
            passed=not unsettled, description=_sentence(unsettled), metadata={**_metadata(unsettled), **_shown(report)}
        )

    return dg.asset_check(
        asset=names.head,
        name=_NAME,
        description="No batch needs somebody: none is set aside, failed, or changed and left alone.",
        additional_deps=[names.batches],
    )(batches_settled)


def settled_evaluation(names: DatasetNames, refused: Mapping[str, str]) -> dg.AssetCheckEvaluation:
    """Return the check's evaluation after a run that set batches aside."""
    return dg.AssetCheckEvaluation(
        asset_key=names.head,
        check_name=_NAME,
        passed=False,
        severity=dg.AssetCheckSeverity.ERROR,
        description=_sentence(refused),
        metadata=_metadata(refused),
    )


def named_with_reasons(batches: Mapping[str, str]) -> str:
    """Return a line for each of the first batches: its key, and why it is not in the table."""
    return "\n".join(f"{key}: {reason}" for key, reason in list(batches.items())[:_SHOWN])


def _sentence(unsettled: Mapping[str, str]) -> str:
    if not unsettled:
        return "no batch needs somebody"
    return f"{len(unsettled)} batches need somebody\n{named_with_reasons(unsettled)}"


def _metadata(unsettled: Mapping[str, str]) -> dict[str, Any]:
    """Return the first unsettled batches, and how many there are."""
    first = dict(list(unsettled.items())[:_SHOWN])
    return {"lance/unsettled": len(unsettled), UNSETTLED_BATCHES: dg.MetadataValue.json(first)}


def _shown(report: BatchReport) -> dict[str, Any]:
    """Return how many batches are in each state, and the first of those that are not simply in the table."""
    rows = [
        (batch.key, batch.state.value, "late" if batch.is_late else "", batch.reason)
        for batch in report.batches
        if batch.reason or batch.is_late
    ]
    states = {"lance/batch_states": dg.MetadataValue.json(report.counts)}
    if not rows:
        return states
    shown = table(("batch", "state", "", "why"), rows[:_SHOWN])
    return {**states, "lance/batches": dg.MetadataValue.md(shown)}
