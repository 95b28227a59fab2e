"""Find the events of a dataset or a fleet that a channel has not been told of.

Two kinds of events stand in Dagster's log, and a position in the log says which of them were told: runs that failed,
and observations of batches that were set aside or left alone. The two others are states: a check is red, and so is the
one that says whether rows changed lately. A state is told when it begins, and again when it has a new cause.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from datetime import datetime
from itertools import groupby
from typing import assert_never

import dagster as dg

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.records import dataclass
from lance_ops.dagster.alerts.alert import Alert
from lance_ops.dagster.declaration import AlertEvent, DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import CAUSES, LOOKED
from lance_ops.dagster.event_log import RecordedEvaluation, newest_evaluation
from lance_ops.dagster.head import FRESH
from lance_ops.dagster.landing import (
    CHANGED_TOKEN,
    REFUSED,
    REFUSED_OF_RUN,
    named_with_reasons,
    reported_in_state,
    unsettled_states,
)
from lance_ops.dagster.opening import open_to_look

__all__ = ["TOLD_BY_CHECK", "Told", "Watched", "pending_alerts"]

TOLD_BY_CHECK = "lance/told_by_check"
"""The metadata of a step's failure that names the check which is red for the same reason."""

_EVENTS_AT_ONCE = 500
_SHOWN = 20
_WILL_RETRY_TAG = "dagster/will_retry"
_SECONDS_TO_DECIDE = 60


@dataclass(frozen=True)
class Told:
    """What a channel has been told: the sensor's cursor. Its size does not grow with the number of alerts."""

    failure: int = 0
    """The position in Dagster's log of the newest failed run that was told or is of no interest."""
    batch: int = 0
    """The same for observations of batches."""
    red_checks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The checks that were red when they were last looked at, each with the causes that it named."""

    def encode(self) -> str:
        """Return the cursor."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, cursor: str | None) -> Told | None:
        """Return what a cursor says; None for a lost or unreadable one."""
        try:
            found = json.loads(cursor or "null")
            red = {name: tuple(map(str, causes)) for name, causes in found["red_checks"].items()}
            return cls(int(found["failure"]), int(found["batch"]), red)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    @classmethod
    def from_now_on(cls, instance: dg.DagsterInstance, names: DatasetNames) -> Told:
        """Return a cursor that skips past failures and batches. Checks that are red now are still reported."""
        failed = instance.fetch_run_status_changes(dg.DagsterEventType.RUN_FAILURE, limit=1).records
        observed = instance.fetch_observations(names.batches, limit=1).records
        newest_failure, newest_batch = (records[0].storage_id if records else 0 for records in (failed, observed))
        return cls(newest_failure, newest_batch)


@dataclass(frozen=True)
class Watched:
    """What alerts are about: a dataset or a fleet, by name, with the names of its jobs and of its head's checks."""

    name: str
    jobs: Collection[str]
    checks: Sequence[str] = ()
    dataset: DatasetConfig | None = None

    @property
    def names(self) -> DatasetNames:
        """The names of the dataset or the fleet in Dagster."""
        return DatasetNames(self.name)

    @property
    def has_batches(self) -> bool:
        """Whether raw files land for it."""
        return self.dataset is not None and self.dataset.raw is not None


def pending_alerts(
    instance: dg.DagsterInstance, watched: Watched, events: Collection[AlertEvent], told: Told, now: datetime
) -> Iterator[tuple[Alert | None, Told]]:
    """Yield pairs: an alert, or None, and the cursor to store after sending it.

    Alerts come in the order in which they must be sent: a caller that stops goes on from the last value it kept.
    """
    for event in events:
        match event:
            case AlertEvent.FAILURE:
                found = _failures(instance, watched, events, told, now)
            case AlertEvent.QUARANTINE:
                found = _quarantines(instance, watched, told)
            case AlertEvent.CHECK:
                told_apart = FRESH if AlertEvent.FRESHNESS in events else None
                found = _checks(instance, watched, events, told, [c for c in watched.checks if c != told_apart])
            case AlertEvent.FRESHNESS:
                found = _checks(instance, watched, events, told, [c for c in watched.checks if c == FRESH])
            case _:
                assert_never(event)
        for alert, after in found:
            yield alert, after
            told = after


def _failures(
    instance: dg.DagsterInstance, watched: Watched, events: Collection[AlertEvent], told: Told, now: datetime
) -> Iterator[tuple[Alert | None, Told]]:
    failed = dg.RunStatusChangeRecordsFilter(dg.DagsterEventType.RUN_FAILURE, after_storage_id=told.failure)
    for record in instance.fetch_run_status_changes(failed, limit=_EVENTS_AT_ONCE, ascending=True).records:
        run = instance.get_run_by_id(record.run_id)
        is_young = now.timestamp() - record.timestamp < _SECONDS_TO_DECIDE
        if run is not None and instance.run_retries_enabled and _WILL_RETRY_TAG not in run.tags and is_young:
            return  # Dagster stores the failure first, and then whether it retries the run
        told = replace(told, failure=record.storage_id)
        concerns = run is not None and run.tags.get(_WILL_RETRY_TAG) != "true" and _is_of_dataset(run, watched)
        event = record.event_log_entry.dagster_event
        message = (event.message if event else "") or "the run failed"
        yield _failure(instance, watched, events, run, message) if run is not None and concerns else None, told


def _is_of_dataset(run: dg.DagsterRun, watched: Watched) -> bool:
    names = watched.names
    return run.job_name in watched.jobs or bool({names.head, names.batches} & (run.asset_selection or frozenset()))


def _failure(
    instance: dg.DagsterInstance,
    watched: Watched,
    events: Collection[AlertEvent],
    run: dg.DagsterRun,
    message: str,
) -> Alert | None:
    """Return the alert of a failed run; None if another event of the channel says why it failed."""
    reasons = []
    for record in instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE).records:
        event = record.event_log_entry.dagster_event
        data = event.step_failure_data if event else None
        if data is None:
            continue
        given = data.user_failure_data
        if given and REFUSED_OF_RUN in given.metadata and AlertEvent.QUARANTINE in events:
            return None
        if data.error and data.error.cls_name == "DagsterAssetCheckFailedError" and AlertEvent.CHECK in events:
            return None
        if given and TOLD_BY_CHECK in given.metadata and AlertEvent.CHECK in events:
            return None
        error = data.error.cause or data.error if data.error else None
        reasons.append((given.description if given else None) or (error.message if error else "") or "a step failed")
    return Alert(
        AlertEvent.FAILURE,
        watched.name,
        run.run_id,
        f"a run of {run.job_name} failed",
        "\n".join(reason.strip() for reason in reasons) or message,
        "Mend the cause and launch the run again"
        + ("; batches are asked for again up to five times a day." if watched.has_batches else "."),
        _newest_version(watched.dataset),
        run_id=run.run_id,
    )


def _quarantines(instance: dg.DagsterInstance, watched: Watched, told: Told) -> Iterator[tuple[Alert | None, Told]]:
    """Yield one alert for neighbouring batches of one run: those set aside, or those that changed and were left."""
    observed = dg.AssetRecordsFilter(watched.names.batches, after_storage_id=told.batch)
    records = instance.fetch_observations(observed, limit=_EVENTS_AT_ONCE, ascending=True).records
    for run_id, of_run in groupby(records, key=lambda record: record.run_id):
        reasons = {}
        for record in of_run:
            told = replace(told, batch=record.storage_id)
            seen = record.asset_observation
            if seen is not None and _needs_somebody(seen):
                reasons[record.partition_key or ""] = seen.description or ""
        yield _quarantine(watched, run_id, reasons) if reasons else None, told


def _needs_somebody(seen: dg.AssetObservation) -> bool:
    """Return whether an observation of a batch says that it was set aside, or that it changed and was left alone."""
    return not {REFUSED, CHANGED_TOKEN}.isdisjoint(seen.metadata)


def _quarantine(watched: Watched, run_id: str, reasons: dict[str, str]) -> Alert:
    count = f"{len(reasons)} batches need" if len(reasons) > 1 else "a batch needs"
    return Alert(
        AlertEvent.QUARANTINE,
        watched.name,
        f"{run_id}\0{sorted(reasons.items())}",
        f"{count} somebody",
        named_with_reasons(reasons),
        "Mend or remove the files; a mended one is asked for again.",
        _newest_version(watched.dataset),
        tuple(reasons)[:_SHOWN],
        run_id or None,
    )


def _checks(
    instance: dg.DagsterInstance,
    watched: Watched,
    events: Collection[AlertEvent],
    told: Told,
    names: Sequence[str],
) -> Iterator[tuple[Alert | None, Told]]:
    """Yield an alert for each check that has turned red, or that is red for a new cause; a warning is never told.

    An evaluation that could not look says nothing of the check: what was told of it before still holds.
    """
    for name in names:
        newest = newest_evaluation(instance, dg.AssetCheckKey(watched.names.head, name))
        if newest is None or _could_not_look(newest.evaluation):
            continue
        found, number = newest.evaluation, newest.record_id
        before = told.red_checks.get(name)
        is_red = not found.passed and found.severity is dg.AssetCheckSeverity.ERROR
        causes = _causes(found) if is_red else None
        if causes == before:
            continue
        is_news = causes is not None and (before is None or not set(causes).issubset(before))
        is_told_apart = is_news and AlertEvent.QUARANTINE in events and _is_all_quarantined(instance, watched, found)
        if is_told_apart:  # this alert does not tell of it: what it told before still holds, as far as it is still so
            causes = tuple(cause for cause in before or () if cause in (causes or ())) or None
        others = {other: named for other, named in told.red_checks.items() if other != name}
        told = replace(told, red_checks=others if causes is None else {**others, name: causes})
        if not is_news or is_told_apart:
            yield None, told
        elif watched.dataset is not None and name == FRESH and AlertEvent.FRESHNESS in events:
            yield _stale(watched, watched.dataset, number, found), told
        else:
            yield _red_check(watched, newest), told


def _causes(found: dg.AssetCheckEvaluation) -> tuple[str, ...]:
    """Return what makes a check red, as far as its evaluation lists it."""
    listed = found.metadata.get(CAUSES)
    return tuple(map(str, listed.value)) if listed is not None and isinstance(listed.value, list) else ()


def _could_not_look(found: dg.AssetCheckEvaluation) -> bool:
    looked = found.metadata.get(LOOKED)
    return looked is not None and looked.value is False


def _is_all_quarantined(instance: dg.DagsterInstance, watched: Watched, found: dg.AssetCheckEvaluation) -> bool:
    """Return whether a check only says that batches are in a state of which other alerts tell.

    Those follow observations. An old observation says nothing of a batch that is now in another state.
    """
    states = unsettled_states(found)
    return bool(states) and reported_in_state(instance, watched.names, states) == states.keys()


def _red_check(watched: Watched, newest: RecordedEvaluation) -> Alert:
    found = newest.evaluation
    return Alert(
        AlertEvent.CHECK,
        watched.name,
        f"{found.check_name}\0{newest.record_id}",
        f"check {found.check_name} is red",
        found.description or "the check failed",
        f"Mend what it names, then run {watched.names.of('checks')}.",
        _newest_version(watched.dataset),
        run_id=newest.run_id or None,
    )


def _stale(watched: Watched, dataset: DatasetConfig, number: int, found: dg.AssetCheckEvaluation) -> Alert:
    return Alert(
        AlertEvent.FRESHNESS,
        watched.name,
        f"{found.check_name}\0{number}",
        f"no row has changed for {dataset.health.hours_without_version:g} hours",
        found.description or "the check failed",
        f"See whether files land, and what the sensor {watched.names.of('raw_files')} says of them."
        if watched.has_batches
        else "See whether its writers still run.",
        _newest_version(watched.dataset),
    )


def _newest_version(dataset: DatasetConfig | None) -> int | None:
    """Return the newest version; None if it does not open, which must not hold up an alert."""
    try:
        newest = open_to_look(dataset) if dataset is not None else None
    except (LanceOpsError, OSError):
        return None
    return newest.version if newest else None
