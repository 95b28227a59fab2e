"""Build the check that names the batches which need somebody, and the sensor that reports it.

A run that fails evaluates the checks that it planned, because the steps after a failed one do not run.
Files also change without a run, and a process may die before it reaches the check. The sensor therefore evaluates the
check, and the check of the landing folder with it, and reports each whose result differs from the newest recorded one.

A folder that cannot be listed once may be listed by the next tick. The sensor reports it if two ticks in a row cannot.

A batch of which only no run is found may get its run a moment later: Dagster adds a tick's partitions before it
launches their runs. The check names such a doubtful batch once evaluations have found it without a break for two
minutes or more. Each evaluation records since when that is so, and the next one takes it from there. Therefore every
evaluation looks at all batches, also that of a run which sets some aside.
"""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from lance_ops.core.errors import CorruptFile, LanceOpsError
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import CAUSES, causes_of_red, check_result_of
from lance_ops.dagster.event_log import newest_evaluation
from lance_ops.dagster.head import unopened_warning
from lance_ops.dagster.landing.batch_report import batch_states
from lance_ops.dagster.landing.batch_state import BatchReport, BatchState
from lance_ops.dagster.landing.landing import shortened
from lance_ops.dagster.landing.landing_check import (
    LANDING_CHECK,
    evaluate_landing,
    landing_evaluation,
    newest_landing_evaluation,
    said_of_landing,
    was_listed,
)
from lance_ops.dagster.markdown import table
from lance_ops.dagster.opening import OpenNewest
from lance_ops.dagster.tick_failures import skip_tick_if_damaged, why_unopened

__all__ = [
    "SETTLED_CHECK",
    "UNSETTLED_BATCHES",
    "build_settled_check",
    "build_settled_sensor",
    "evaluate_settled",
    "named_with_reasons",
    "unsettled_states",
]

SETTLED_CHECK = "batches_settled"
"""The name of the check."""

UNSETTLED_BATCHES = "lance/unsettled_batches"
"""The metadata of the check's evaluations that names the first batches which need somebody, with the reasons."""

_UNSETTLED = "lance/unsettled"
_DOUBTFUL = "lance/doubtful"
_DOUBTED_SINCE = "lance/doubtful_batches"
"""The metadata that says since when evaluations have doubted a batch, in ISO 8601."""

_LISTED = "listed"
_NOT_LISTED = "not listed"
"""The cursors of the sensor: words, because Dagster keeps the cursor before instead of an empty one."""

_SHOWN = 20
_DOUBTED_FOR = timedelta(minutes=2)
"""How long a batch must have been doubtful before the check names it."""
_MOST_DOUBTS = 1000
"""How many doubtful batches an evaluation records, and so may come to be named; of the others it says how many."""


def build_settled_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    """Return the check `batches_settled` of a dataset with a landing folder."""
    names = DatasetNames(config.name)
    config.landing()  # refuse a declaration without a landing folder now, not in the first run

    def batches_settled(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        try:
            return check_result_of(evaluate_settled(config, context.instance))
        except CorruptFile as error:
            return check_result_of(unopened_warning(names.head, SETTLED_CHECK, error))

    return dg.asset_check(
        asset=names.head,
        name=SETTLED_CHECK,
        description="No batch needs somebody: none is set aside, failed, or changed and left alone.",
        additional_deps=[names.batches],
    )(batches_settled)


def build_settled_sensor(config: DatasetConfig, interval_seconds: int = 300) -> dg.SensorDefinition:
    """Return the sensor that reports the check if its result differs from the newest recorded one."""
    names = DatasetNames(config.name)

    @dg.sensor(
        name=names.of("settled"),
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Reports the check {SETTLED_CHECK} of {config.name} when other batches need somebody than before.",
    )
    @skip_tick_if_damaged(config)
    def settled(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        try:
            report = batch_states(config, context.instance, count_plain=True)
        except (LanceOpsError, OSError) as error:
            landing = evaluate_landing(config, context.instance)
            if not was_listed(landing):
                return _not_listed(context, landing)
            if isinstance(error, CorruptFile):
                return _reported(context.instance, [landing], _LISTED, why_unopened(config, error))
            # It fails again unless the folder was what failed.
            report = batch_states(config, context.instance, count_plain=True)
        found = _evaluate(names, report, _newest_recorded(names, context.instance))
        last = newest_landing_evaluation(names, context.instance)
        landing = landing_evaluation(names, report.set_aside, report.outside, report.listing_seconds, last)
        return _reported(context.instance, [found, landing], _LISTED)

    return settled


def evaluate_settled(
    config: DatasetConfig,
    instance: dg.DagsterInstance,
    refused: Mapping[str, str] | None = None,
    open_newest: OpenNewest | None = None,
    failing: dg.DagsterRun | None = None,
) -> dg.AssetCheckEvaluation:
    """Evaluate the check on the table that `open_newest` opens if it is given.

    `failing` is the calling run if its ingestion has failed for good: its batches that the table lacks have failed.
    `refused` are the batches that the calling run sets aside, each with the reason: Dagster may not have stored the
    run's events yet.
    """
    names = DatasetNames(config.name)
    report = batch_states(config, instance, count_plain=True, open_newest=open_newest, failing=failing)
    return _evaluate(names, report, _newest_recorded(names, instance), refused)


def unsettled_states(evaluation: dg.AssetCheckEvaluation) -> dict[str, BatchState]:
    """Return the batches that make an evaluation of the check red, with their states.

    It is empty if the evaluation does not name all of them: it names the first ones only.
    """
    named, listed = (evaluation.metadata.get(name) for name in (UNSETTLED_BATCHES, CAUSES))
    keys = list(named.value) if named is not None and isinstance(named.value, dict) else []
    causes = set(map(str, listed.value)) if listed is not None and isinstance(listed.value, list) else set()
    states = {key: state for key in keys for state in BatchState if _cause(key, state) in causes}
    return states if len(states) == len(causes) else {}


def _cause(key: str, state: BatchState) -> str:
    return f"{key}: {state.value}"


def named_with_reasons(batches: Mapping[str, str]) -> str:
    """Return a line with key and reason for each of the first 20 batches; a last line counts the others, if any."""
    told = [f"{key}: {reason}" for key, reason in batches.items()]
    return "\n".join(shortened(told, "and {:,} more, which `lance-ops batches` names"))


def _newest_recorded(names: DatasetNames, instance: dg.DagsterInstance) -> dg.AssetCheckEvaluation | None:
    recorded = newest_evaluation(instance, dg.AssetCheckKey(names.head, SETTLED_CHECK))
    return None if recorded is None else recorded.evaluation


def _not_listed(context: dg.SensorEvaluationContext, landing: dg.AssetCheckEvaluation) -> dg.SensorResult:
    """Return the result of a tick that could not list the folder; the cursor says whether the tick before could."""
    if context.cursor == _NOT_LISTED:
        return _reported(context.instance, [landing], _NOT_LISTED)
    return dg.SensorResult(skip_reason=f"looked at again: {landing.description}", cursor=_NOT_LISTED)


def _reported(
    instance: dg.DagsterInstance, found: Sequence[dg.AssetCheckEvaluation], cursor: str, why_no_more: str = ""
) -> dg.SensorResult:
    """Return a tick's result that reports those evaluations that differ from the newest recorded ones, and says so.

    `why_no_more` says why the tick evaluates no other check.
    """
    changed = [
        each
        for each in found
        if (last := newest_evaluation(instance, each.asset_check_key)) is None or _said(last.evaluation) != _said(each)
    ]
    told = "; ".join(str(each.description) for each in changed or found)
    reason = "; ".join(filter(None, [why_no_more, f"{'reported' if changed else 'as before'}: {told}"]))
    return dg.SensorResult(asset_events=changed, skip_reason=reason, cursor=cursor)


def _evaluate(
    names: DatasetNames,
    report: BatchReport,
    last: dg.AssetCheckEvaluation | None,
    refused: Mapping[str, str] | None = None,
) -> dg.AssetCheckEvaluation:
    """Evaluate the check of batches; `last` is its newest recorded result."""
    now = datetime.now(UTC)
    doubtful = [batch.key for batch in report.unsettled if batch.is_doubtful]
    before = _doubted_since(last)
    since = {key: before.get(key, now.isoformat()) for key in doubtful[:_MOST_DOUBTS]}
    confirmed = {key for key in before.keys() & since if now - datetime.fromisoformat(since[key]) >= _DOUBTED_FOR}
    found = [batch for batch in report.unsettled if not batch.is_doubtful or batch.key in confirmed]
    unsettled = {batch.key: batch.reason for batch in found} | dict(refused or {})
    num_doubtful = sum(key not in unsettled for key in doubtful)
    states = {batch.key: batch.state for batch in found} | dict.fromkeys(refused or {}, BatchState.QUARANTINED)
    causes = causes_of_red(_cause(key, state) for key, state in states.items())
    return dg.AssetCheckEvaluation(
        asset_key=names.head,
        check_name=SETTLED_CHECK,
        passed=not unsettled,
        severity=dg.AssetCheckSeverity.ERROR,
        description=_sentence(unsettled, num_doubtful),
        metadata=_metadata(unsettled, num_doubtful, since) | causes | _shown(report),
    )


def _doubted_since(last: dg.AssetCheckEvaluation | None) -> dict[str, str]:
    """Return the batches that an evaluation doubted, each with the time since when that is so."""
    recorded = last.metadata.get(_DOUBTED_SINCE) if last is not None else None
    since = recorded.value if recorded is not None and isinstance(recorded.value, dict) else {}
    return {str(key): str(time) for key, time in since.items()}


def _said(evaluation: dg.AssetCheckEvaluation) -> tuple[object, ...]:
    """Return what an evaluation says: its sentence, the batches that need somebody, and the doubtful ones."""
    if evaluation.check_name == LANDING_CHECK:
        return said_of_landing(evaluation)
    found = (evaluation.metadata.get(name) for name in (_UNSETTLED, UNSETTLED_BATCHES, _DOUBTED_SINCE, CAUSES))
    return evaluation.passed, evaluation.description, *(each.value if each is not None else None for each in found)


def _sentence(unsettled: Mapping[str, str], num_doubtful: int) -> str:
    doubt = f"; no run of {num_doubtful} others is found, and they are looked at again" if num_doubtful else ""
    if not unsettled:
        return f"no batch needs somebody{doubt}"
    return f"{len(unsettled)} batches need somebody{doubt}\n{named_with_reasons(unsettled)}"


def _metadata(
    unsettled: Mapping[str, str], num_doubtful: int, since: Mapping[str, str]
) -> dict[str, dg.MetadataValue[Any]]:
    """Return the first unsettled batches and how many there are, and the same of doubtful ones if there are any."""
    first = dict(list(unsettled.items())[:_SHOWN])
    told: dict[str, dg.MetadataValue[Any]] = {
        _UNSETTLED: dg.MetadataValue.int(len(unsettled)),
        UNSETTLED_BATCHES: dg.MetadataValue.json(first),
    }
    if num_doubtful:
        told[_DOUBTFUL] = dg.MetadataValue.int(num_doubtful)
    if since:
        told[_DOUBTED_SINCE] = dg.MetadataValue.json(dict(since))
    return told


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
