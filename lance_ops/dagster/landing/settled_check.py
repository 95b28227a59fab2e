"""Build the check that names the batches which were asked for and are not in the table.

A run that sets batches aside reports the check itself, because the steps after a failed one do not run. A file is also
rewritten, removed or put back without a run, and a run fails before it comes to the check: a sensor evaluates it, and
reports it when other batches need somebody than the newest recorded result says.
"""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

from collections.abc import Mapping
from typing import Any

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.landing.batch_report import batch_states
from lance_ops.dagster.landing.batch_state import BatchReport
from lance_ops.dagster.markdown import table
from lance_ops.dagster.newest_evaluation import newest_evaluation

__all__ = [
    "UNSETTLED_BATCHES",
    "build_settled_check",
    "build_settled_sensor",
    "named_with_reasons",
    "settled_evaluation",
]

UNSETTLED_BATCHES = "lance/unsettled_batches"
"""The metadata of the check's evaluations that names the first batches which need somebody, with the reasons."""

_UNSETTLED = "lance/unsettled"
_NAME = "batches_settled"
_SHOWN = 20


def build_settled_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    """Return the check `batches_settled` of a dataset with a landing folder."""
    names = DatasetNames(config.name)
    config.landing()  # refuse a declaration without a landing folder now, not in the first run

    def batches_settled(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        found = _evaluation_of(names, batch_states(config, context.instance))
        return dg.AssetCheckResult(passed=found.passed, description=found.description, metadata=dict(found.metadata))

    return dg.asset_check(
        asset=names.head,
        name=_NAME,
        description="No batch needs somebody: none is set aside, failed, or changed and left alone.",
        additional_deps=[names.batches],
    )(batches_settled)


def build_settled_sensor(config: DatasetConfig, interval_seconds: int = 300) -> dg.SensorDefinition:
    """Return the sensor that reports the check when the newest recorded result, also of a run, differs."""
    names = DatasetNames(config.name)

    @dg.sensor(
        name=names.of("settled"),
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Reports the check {_NAME} of {config.name} when other batches need somebody than before.",
    )
    def settled(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        found = _evaluation_of(names, batch_states(config, context.instance))
        last = newest_evaluation(context.instance, dg.AssetCheckKey(names.head, _NAME))
        if last is not None and _told(last.evaluation) == _told(found):
            return dg.SensorResult(skip_reason=dg.SkipReason(f"as before: {found.description}"))
        return dg.SensorResult(asset_events=[found])

    return settled


def settled_evaluation(
    names: DatasetNames, unsettled: Mapping[str, str], report: BatchReport | None = None
) -> dg.AssetCheckEvaluation:
    """Return the check's evaluation for these batches that need somebody, each with the reason."""
    return dg.AssetCheckEvaluation(
        asset_key=names.head,
        check_name=_NAME,
        passed=not unsettled,
        severity=dg.AssetCheckSeverity.ERROR,
        description=_sentence(unsettled),
        metadata=_metadata(unsettled) | (_shown(report) if report else {}),
    )


def named_with_reasons(batches: Mapping[str, str]) -> str:
    """Return a line for each of the first batches: its key, and why it is not in the table."""
    return "\n".join(f"{key}: {reason}" for key, reason in list(batches.items())[:_SHOWN])


def _evaluation_of(names: DatasetNames, report: BatchReport) -> dg.AssetCheckEvaluation:
    return settled_evaluation(names, {batch.key: batch.reason for batch in report.unsettled}, report)


def _told(evaluation: dg.AssetCheckEvaluation) -> tuple[object, ...]:
    """Return what an evaluation says of batches that need somebody: how many, and why the first ones do."""
    found = (evaluation.metadata.get(name) for name in (_UNSETTLED, UNSETTLED_BATCHES))
    return evaluation.passed, *(each.value if each is not None else None for each in found)


def _sentence(unsettled: Mapping[str, str]) -> str:
    if not unsettled:
        return "no batch needs somebody"
    return f"{len(unsettled)} batches need somebody\n{named_with_reasons(unsettled)}"


def _metadata(unsettled: Mapping[str, str]) -> dict[str, dg.MetadataValue[Any]]:
    """Return the first unsettled batches, and how many there are."""
    first = dict(list(unsettled.items())[:_SHOWN])
    return {_UNSETTLED: dg.MetadataValue.int(len(unsettled)), UNSETTLED_BATCHES: dg.MetadataValue.json(first)}


def _shown(report: BatchReport) -> dict[str, dg.MetadataValue[Any]]:
    """Return how many batches are in each state, and the first of those that are not simply in the table."""
    rows = [
        (batch.key, batch.state.value, "late" if batch.is_late else "", batch.reason)
        for batch in report.batches
        if batch.reason or batch.is_late
    ]
    states: dict[str, dg.MetadataValue[Any]] = {"lance/batch_states": dg.MetadataValue.json(report.counts)}
    if not rows:
        return states
    shown = table(("batch", "state", "", "why"), rows[:_SHOWN])
    return {**states, "lance/batches": dg.MetadataValue.md(shown)}
