"""The check `fresh`: whether rows changed lately. A compaction, an index or a configuration is no news from the source.

The metadata of the head's newest events says which version changed rows last, so only versions without an event are
read. Time passes without a run: a sensor evaluates the check, and reports it when the newest recorded result differs.
While the table's store refuses or is silent, the sensor judges the last change that it saw.
"""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeAlias

import dagster as dg

from lance_ops.core.errors import CorruptFile, StoreError
from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import check_result_of
from lance_ops.dagster.event_log import RecordedEvaluation, newest_evaluation
from lance_ops.dagster.head.recorded_versions import (
    VersionIdentity,
    change_up_to,
    identity_of,
    is_dated_ahead,
    recorded_versions,
)
from lance_ops.dagster.head.validity import unopened_warning
from lance_ops.dagster.opening import OpenNewest, opening_once
from lance_ops.dagster.tick_failures import skip_tick_if_damaged
from lance_ops.maintenance.health import LastChange

__all__ = ["FRESH", "Freshness", "build_freshness_check", "build_freshness_sensor", "freshness"]

FRESH = "fresh"
"""The name of the check."""

_EVENTS = 20
"""How many of the head's newest events are read: concurrent runs record their versions in any order."""

_DATED_AHEAD = "lance/dated_ahead"
"""The metadata that tells a change of a clock that was ahead, and when it was first seen; see `_change_to_json`."""

_SeenChange: TypeAlias = tuple[LastChange, datetime | None]
"""A change of rows, and when this machine first saw it if its writer's clock was ahead then."""


@dataclass(frozen=True)
class Freshness:
    """How long ago rows last changed, compared with the limit. `change` is None for a table that does not exist.

    `why_unseen` says why the table could not be looked at: then `change` is the last one that was seen. `first_seen` is
    when this machine first saw a change whose writer's clock was ahead then: the change is at least as old.
    """

    change: LastChange | None
    limit: timedelta
    now: datetime
    why_unseen: str | None = None
    first_seen: datetime | None = None

    @property
    def age(self) -> timedelta | None:
        """The time since rows changed, or the least that it can be; None if it is not known."""
        committed = self.change.committed_at if self.change else None
        return None if committed is None else self.now - min(committed, self.first_seen or committed)

    @property
    def passed(self) -> bool:
        """Whether rows changed within the limit, or the writer of the last change did not say when."""
        return self.age is None or (not _is_ahead(self.change, self.now) and self.age < self.limit)

    def evaluation(self, head: dg.AssetKey) -> dg.AssetCheckEvaluation:
        """Return the result of the check."""
        metadata: dict[str, dg.MetadataValue[Any]] = {"lance/limit": _hours(self.limit)}
        if self.change is not None:
            metadata["lance/version"] = dg.MetadataValue.float(float(self.change.version))
        if self.age is not None:
            metadata["lance/value"] = _hours(self.age)
        if self.change is not None and self.first_seen is not None:
            metadata[_DATED_AHEAD] = dg.MetadataValue.json(_change_to_json((self.change, self.first_seen)))
        return dg.AssetCheckEvaluation(
            head,
            FRESH,
            self.passed,
            metadata,
            severity=dg.AssetCheckSeverity.ERROR,
            description=self._sentence,
        )

    @property
    def _sentence(self) -> str:
        if self.change is None:
            return "there is no version yet: the first batch makes the dataset"
        if self.change.committed_at is None:
            return f"rows changed last in version {self.change.version}, whose writer did not say when"
        when = f"rows changed last in version {self.change.version} of {self.change.committed_at:%Y-%m-%d %H:%M} UTC"
        if _is_ahead(self.change, self.now):
            found = f"{when}: the clock of its writer was ahead of this one, so its age is not known; set the clocks"
        else:
            if self.first_seen is not None:
                seen = f"{self.first_seen:%Y-%m-%d %H:%M} UTC"
                when += f": the clock of its writer was ahead of this one, which saw it at {seen}"
            hours = f"{self.limit / timedelta(hours=1):g} hours"
            found = f"{when}, {'within' if self.passed else 'before'} the last {hours}"
        return found if self.why_unseen is None else f"{found}, and the table cannot be looked at: {self.why_unseen}"


def freshness(instance: dg.DagsterInstance, config: DatasetConfig, open_newest: OpenNewest | None = None) -> Freshness:
    """Return how fresh the dataset's rows are. Reads the versions that the head has no event of, newest first."""
    told = _dated_ahead(newest_evaluation(instance, dg.AssetCheckKey(DatasetNames(config.name).head, FRESH)))
    return _freshness_of(config, _look(instance, config, None, told, open_newest))


@dataclass(frozen=True)
class _Seen:
    """The sensor's cursor: the version that it saw last, and the newest change of rows up to it."""

    identity: VersionIdentity
    change: _SeenChange | None

    def encode(self) -> str:
        """Return the cursor's text."""
        return json.dumps([*self.identity, None if self.change is None else _change_to_json(self.change)])

    @classmethod
    def decode(cls, cursor: str | None) -> Self | None:
        """Return what a cursor's text says, None if it cannot be read."""
        try:
            version, committed_at, change = json.loads(cursor or "null")
            return cls((version, committed_at), None if change is None else _change_from_json(change))
        except (TypeError, ValueError):
            return None


def _look(
    instance: dg.DagsterInstance,
    config: DatasetConfig,
    seen: _Seen | None,
    told: _SeenChange | None,
    open_newest: OpenNewest | None = None,
) -> _Seen | None:
    """Return the newest version and the change up to it; None without a table.

    If the newest version is the `seen` one, no event is read. `told` is the change that the check's newest evaluation
    tells if the change was dated ahead.
    """
    opened = (open_newest or opening_once(config))()
    if opened is None:
        return None
    identity = identity_of(opened.manifest)
    if seen is not None and seen.identity == identity:
        change = seen.change[0] if seen.change else None
    else:
        change = change_up_to(opened, list(recorded_versions(instance, config, _EVENTS)))
    if change is None:
        return _Seen(identity, None)
    known = [each for each in (seen.change if seen else None, told) if each is not None]
    return _Seen(identity, (change, _first_seen(change, known)))


def _first_seen(change: LastChange, known: Sequence[_SeenChange]) -> datetime | None:
    """Return when a change was first seen whose writer's clock was ahead then; None for another change.

    Once the time that the change bears has come, only the moment of this first sight tells that the change is older.
    """
    seen = [moment for each, moment in known if each == change and moment is not None]
    now = datetime.now(UTC)
    return min(seen) if seen else now if _is_ahead(change, now) else None


def _is_ahead(change: LastChange | None, now: datetime) -> bool:
    """Return whether the clock of a change's writer was ahead of this machine's, by more than clocks may differ."""
    committed_at = change.committed_at if change is not None else None
    return committed_at is not None and is_dated_ahead(committed_at.timestamp(), now.timestamp())


def _dated_ahead(last: RecordedEvaluation | None) -> _SeenChange | None:
    """Return the change that an evaluation tells of if the change was dated ahead."""
    told = last.evaluation.metadata.get(_DATED_AHEAD) if last is not None else None
    try:
        return _change_from_json(told.value) if told is not None else None
    except (TypeError, ValueError):
        return None


def _change_to_json(seen: _SeenChange) -> list[int | str | None]:
    """Return a version and the time that it bears, then when it was first seen if it was dated ahead."""
    change, first_seen = seen
    moment = change.committed_at.isoformat() if change.committed_at else None
    return [change.version, moment, *([] if first_seen is None else [first_seen.isoformat()])]


def _change_from_json(told: Any) -> _SeenChange:
    """Return what `_change_to_json` encoded; raise `TypeError` or `ValueError` for anything else."""
    version, moment, *rest = told
    (first_seen,) = rest or [None]
    change = LastChange(version, None if moment is None else datetime.fromisoformat(moment))
    return change, None if first_seen is None else datetime.fromisoformat(first_seen)


def build_freshness_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    """Return the check of a dataset that declares `health.hours_without_version`."""
    names = DatasetNames(config.name)

    @dg.asset_check(
        asset=names.head,
        name=FRESH,
        description=f"Rows were inserted, updated or deleted within {config.health.hours_without_version:g} hours.",
        additional_deps=[names.batches] if config.raw is not None else None,
    )
    def fresh(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        try:
            return check_result_of(freshness(context.instance, config).evaluation(names.head))
        except CorruptFile as error:
            return check_result_of(unopened_warning(names.head, FRESH, error))

    return fresh


def build_freshness_sensor(config: DatasetConfig, interval_seconds: int = 60) -> dg.SensorDefinition:
    """Return the sensor that reports the check when the newest recorded result, also of a run, differs.

    Its cursor is what it knows of the newest version, so a tick without a new version reads no event of the head.
    """
    names = DatasetNames(config.name)

    @dg.sensor(
        name=names.of("freshness"),
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Reports the check {FRESH} of {config.name} when it turns red or green.",
    )
    @skip_tick_if_damaged(config)
    def fresh(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        seen = _Seen.decode(context.cursor)
        last = newest_evaluation(context.instance, dg.AssetCheckKey(names.head, FRESH))
        why_unseen: str | None = None
        try:
            seen = _look(context.instance, config, seen, _dated_ahead(last))
        except StoreError as error:
            if _freshness_of(config, seen).passed:
                raise  # the tick fails and names the store; the rows that were seen are not too old yet
            why_unseen = str(error)
        found = _freshness_of(config, seen, why_unseen).evaluation(names.head)
        is_told = last is not None and _result(last.evaluation) == _result(found)
        words = f"{'still' if is_told else 'reported as'} {'green' if found.passed else 'red'}: {found.description}"
        cursor = seen.encode() if seen else None
        return dg.SensorResult(asset_events=[] if is_told else [found], skip_reason=words, cursor=cursor)

    return fresh


def _hours(time: timedelta) -> dg.FloatMetadataValue:
    return dg.MetadataValue.float(time / timedelta(hours=1))


def _result(evaluation: dg.AssetCheckEvaluation) -> tuple[bool, dg.AssetCheckSeverity, object]:
    """Return the result, and what a later evaluation must know of a change that was dated ahead.

    A check that could not look at the table has neither of the other results.
    """
    ahead = evaluation.metadata.get(_DATED_AHEAD)
    return evaluation.passed, evaluation.severity, ahead.value if ahead is not None else None


def _freshness_of(config: DatasetConfig, seen: _Seen | None, why_unseen: str | None = None) -> Freshness:
    change, first_seen = (seen.change if seen else None) or (None, None)
    return Freshness(change, _limit(config), datetime.now(UTC), why_unseen, first_seen)


def _limit(config: DatasetConfig) -> timedelta:
    hours = config.health.hours_without_version
    return timedelta.max if hours is None else timedelta(hours=hours)
