"""Find the events of a dataset or a fleet that a channel has not been told of.

Two kinds of events stand in Dagster's log, and a position in the log says which of them were told: runs that failed,
and observations of batches that were set aside or left alone. The two others are states: a check is red, and so is the
one that says whether rows changed lately. A state is told when it begins, again when it has a new cause, and when it
ends. All of this is read from Dagster, never from the table: a store that is silent holds up no alert.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TypeVar, assert_never

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.dagster.alerts.alert import Alert
from lance_ops.dagster.declaration import AlertEvent, DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import CAUSES, LOOKED
from lance_ops.dagster.event_log import RecordedEvaluation, newest_evaluation
from lance_ops.dagster.head import FRESH, newest_recorded_version
from lance_ops.dagster.landing import (
    CHANGED_TOKEN,
    REFUSED,
    REFUSED_OF_RUN,
    named_with_reasons,
    reported_in_state,
    unsettled_states,
)
from lance_ops.dagster.runs import awaits_retry, materializes_any, was_retried

__all__ = ["TOLD_BY_CHECK", "Told", "Watched", "pending_alerts"]

T = TypeVar("T")

TOLD_BY_CHECK = "lance/told_by_check"
"""The metadata of a step's failure that names the check which is red for the same reason."""

_EVENTS_AT_ONCE = 500
_SHOWN = 20


@dataclass(frozen=True)
class Told:
    """What a channel has been told: the sensor's cursor. Its size does not grow with the number of alerts."""

    failure: int = 0
    """The position in Dagster's log of the newest failed run that was told or is of no interest."""
    batch: int = 0
    """The same for observations of batches."""
    red_checks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The checks that were red when they were last looked at, each with the causes that it named."""
    told_checks: Mapping[str, int] = field(default_factory=dict)
    """The checks that were told as red and not yet as green, each with the record's id of the evaluation told first."""

    def encode(self) -> str:
        """Return the cursor."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, cursor: str | None) -> Told | None:
        """Return what a cursor says; None for a lost or unreadable one."""
        try:
            found = json.loads(cursor or "null")
            red = {name: tuple(map(str, causes)) for name, causes in found["red_checks"].items()}
            told = {str(name): int(first) for name, first in found.get("told_checks", {}).items()}
            return cls(int(found["failure"]), int(found["batch"]), red, told)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    @classmethod
    def from_cursor(cls, cursor: str | None, instance: dg.DagsterInstance, names: DatasetNames) -> Told:
        """Return what a cursor says. Without one, earlier failures and batches are not told, and red checks are.

        SQLite gives the highest ids again after somebody deletes a run or wipes an asset. If the position
        were above the newest record, the records that get these ids next would be skipped.
        """
        failed = instance.fetch_run_status_changes(dg.DagsterEventType.RUN_FAILURE, limit=1).records
        observed = instance.fetch_observations(names.batches, limit=1).records
        newest_failure, newest_batch = (records[0].storage_id if records else 0 for records in (failed, observed))
        told = cls.decode(cursor)
        if told is None:
            return cls(newest_failure, newest_batch)
        return replace(told, failure=min(told.failure, newest_failure), batch=min(told.batch, newest_batch))


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
        run = _run_to_tell(instance, record.run_id, watched)
        if run is not None and awaits_retry(instance, run, datetime.fromtimestamp(record.timestamp, UTC), now):
            return  # the dataset's later failures wait, too, because the position cannot pass this one
        told = replace(told, failure=record.storage_id)
        event = record.event_log_entry.dagster_event
        message = (event.message if event else "") or "the run failed"
        yield _failure(instance, watched, events, run, message) if run is not None else None, told


def _run_to_tell(instance: dg.DagsterInstance, run_id: str, watched: Watched) -> dg.DagsterRun | None:
    """Return a failed run of the dataset; None if it is of something else, was started again, or was deleted."""
    run, names = instance.get_run_by_id(run_id), watched.names
    if run is None or was_retried(run):
        return None
    is_ours = run.job_name in watched.jobs or materializes_any(instance, run, [names.head, names.batches])
    return run if is_ours else None


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
        _version(instance, watched),
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
        yield _quarantine(instance, watched, run_id, reasons) if reasons else None, told


def _needs_somebody(seen: dg.AssetObservation) -> bool:
    """Return whether an observation of a batch says that it was set aside, or that it changed and was left alone."""
    return not {REFUSED, CHANGED_TOKEN}.isdisjoint(seen.metadata)


def _quarantine(instance: dg.DagsterInstance, watched: Watched, run_id: str, reasons: dict[str, str]) -> Alert:
    count = f"{len(reasons)} batches need" if len(reasons) > 1 else "a batch needs"
    return Alert(
        AlertEvent.QUARANTINE,
        watched.name,
        f"{run_id}\0{sorted(reasons.items())}",
        f"{count} somebody",
        named_with_reasons(reasons),
        "Mend or remove the files; a mended one is asked for again.",
        _version(instance, watched),
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
    """Yield an alert for each check that has turned red, is red for a new cause, or was told as red and no longer is.

    An evaluation that could not look says nothing of the check: what was told of it before still holds. A check that
    warns is not red.
    """
    for name in names:
        newest = newest_evaluation(instance, dg.AssetCheckKey(watched.names.head, name))
        if newest is None or _could_not_look(newest.evaluation):
            continue
        found = newest.evaluation
        before = told.red_checks.get(name)
        is_red = not found.passed and found.severity is dg.AssetCheckSeverity.ERROR
        causes = _causes(found) if is_red else None
        is_over = causes is None and name in told.told_checks
        if causes == before and not is_over:
            continue
        is_news = causes is not None and (before is None or not set(causes).issubset(before))
        is_told_apart = is_news and AlertEvent.QUARANTINE in events and _is_all_quarantined(instance, watched, found)
        if is_told_apart:  # this alert does not tell of it: what it told before still holds, as far as it is still so
            causes = tuple(cause for cause in before or () if cause in (causes or ())) or None
        first = told.told_checks.get(name, newest.record_id)
        is_told = is_over or (is_news and not is_told_apart)
        told = replace(
            told,
            red_checks=_with(told.red_checks, name, causes),
            told_checks=_with(told.told_checks, name, None if is_over else first) if is_told else told.told_checks,
        )
        yield _of_check(instance, watched, events, newest, first) if is_told else None, told


def _with(checks: Mapping[str, T], name: str, value: T | None) -> dict[str, T]:
    """Return a mapping with another value of one check; None takes the check out."""
    others = {other: kept for other, kept in checks.items() if other != name}
    return others if value is None else {**others, name: value}


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


def _of_check(
    instance: dg.DagsterInstance,
    watched: Watched,
    events: Collection[AlertEvent],
    newest: RecordedEvaluation,
    first: int,
) -> Alert:
    """Return the alert of a check that is red, or that was red; `first` is the evaluation of which was told first."""
    found, dataset = newest.evaluation, watched.dataset
    is_red = not found.passed and found.severity is dg.AssetCheckSeverity.ERROR
    is_freshness = dataset is not None and found.check_name == FRESH and AlertEvent.FRESHNESS in events
    title = f"check {found.check_name} {'is red' if is_red else 'is green again' if found.passed else 'only warns now'}"
    remedy = f"Mend what it names, then run {watched.names.of('checks')}."
    if dataset is not None and is_freshness and is_red:
        title = f"no row is known to have changed for {dataset.health.hours_without_version:g} hours"
        remedy = (
            f"See whether files land, and what the sensor {watched.names.of('raw_files')} says of them."
            if watched.has_batches
            else "See whether its writers still run."
        )
    return Alert(
        AlertEvent.FRESHNESS if is_freshness else AlertEvent.CHECK,
        watched.name,
        f"{found.check_name}\0{first}",
        title,
        found.description or ("the check failed" if is_red else "the check passed"),
        remedy if is_red else "",
        _version(instance, watched),
        run_id=newest.run_id or None,
        occasion="" if newest.record_id == first else str(newest.record_id),
        is_resolved=not is_red,
    )


def _version(instance: dg.DagsterInstance, watched: Watched) -> int | None:
    """Return the newest version that Dagster has recorded."""
    return None if watched.dataset is None else newest_recorded_version(instance, watched.dataset)
