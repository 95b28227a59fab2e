"""The check `fresh`: whether rows changed lately. A compaction, an index or a configuration is no news from the source.

The metadata of the head's newest events says which version changed rows last, so only versions without an event are
read. Time passes without a run: a sensor evaluates the check, and reports it when the newest recorded result differs.
It does so, too, while the table's store refuses or is silent: rows that nobody can see do not keep the check green.
"""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

import json
from datetime import UTC, datetime, timedelta
from typing import Self

import dagster as dg

from lance_ops.core.errors import CorruptFile, StoreError
from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import check_result_of
from lance_ops.dagster.event_log import newest_evaluation
from lance_ops.dagster.head.recorded_versions import (
    VersionIdentity,
    change_up_to,
    identity_of,
    recorded_versions,
)
from lance_ops.dagster.head.validity import unopened_warning
from lance_ops.dagster.opening import OpenNewest, opening_once
from lance_ops.dagster.tick_failures import skip_tick_if_damaged
from lance_ops.maintenance.health import LastChange

__all__ = ["FRESH", "Freshness", "build_freshness_check", "build_freshness_sensor", "freshness"]

FRESH = "fresh"
"""The name of the check."""

_CLOCK_MARGIN = timedelta(hours=1)
"""How far a writer's clock may be ahead of this machine's. The age of a change further ahead is not known."""

_EVENTS = 20
"""How many of the head's newest events are read: concurrent runs record their versions in any order."""


@dataclass(frozen=True)
class Freshness:
    """How long ago rows last changed, compared with the limit. `change` is None for a table that does not exist.

    `why_unseen` says why the table could not be looked at: then `change` is the last one that was seen.
    """

    change: LastChange | None
    limit: timedelta
    now: datetime
    why_unseen: str | None = None

    @property
    def age(self) -> timedelta | None:
        """The time since rows changed; None if it is not known."""
        committed = self.change.committed_at if self.change else None
        return None if committed is None else self.now - committed

    @property
    def passed(self) -> bool:
        """Whether rows changed within the limit, or the writer of the last change did not say when."""
        return self.age is None or -_CLOCK_MARGIN <= self.age < self.limit

    def evaluation(self, head: dg.AssetKey) -> dg.AssetCheckEvaluation:
        """Return the result of the check."""
        metadata: dict[str, float | int] = {"lance/limit": self.limit / timedelta(hours=1)}
        if self.change is not None:
            metadata["lance/version"] = self.change.version
        if self.age is not None:
            metadata["lance/value"] = self.age / timedelta(hours=1)
        return dg.AssetCheckEvaluation(
            head,
            FRESH,
            self.passed,
            {name: dg.MetadataValue.float(float(value)) for name, value in metadata.items()},
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
        if self.age is not None and self.age < -_CLOCK_MARGIN:
            found = f"{when}: the clock of its writer was ahead of this one, so its age is not known; set the clocks"
        else:
            hours = f"{self.limit / timedelta(hours=1):g} hours"
            found = f"{when}, {'within' if self.passed else 'before'} the last {hours}"
        return found if self.why_unseen is None else f"{found}, and the table cannot be looked at: {self.why_unseen}"


def freshness(instance: dg.DagsterInstance, config: DatasetConfig, open_newest: OpenNewest | None = None) -> Freshness:
    """Return how fresh the dataset's rows are. Reads the versions that the head has no event of, newest first."""
    return _freshness_of(config, _look(instance, config, None, open_newest))


@dataclass(frozen=True)
class _Seen:
    """The sensor's cursor: the version that it saw last, and the newest change of rows up to it."""

    identity: VersionIdentity
    change: LastChange | None

    def encode(self) -> str:
        """Return the cursor's text."""
        moment = self.change.committed_at if self.change else None
        change = None if self.change is None else [self.change.version, moment.isoformat() if moment else None]
        return json.dumps([*self.identity, change])

    @classmethod
    def decode(cls, cursor: str | None) -> Self | None:
        """Return what a cursor's text says, None if it cannot be read."""
        try:
            version, committed_at, change = json.loads(cursor or "null")
            if change is None:
                return cls((version, committed_at), None)
            number, moment = change
            told = LastChange(number, None if moment is None else datetime.fromisoformat(moment))
        except (TypeError, ValueError):
            return None
        return cls((version, committed_at), told)


def _look(
    instance: dg.DagsterInstance, config: DatasetConfig, seen: _Seen | None, open_newest: OpenNewest | None = None
) -> _Seen | None:
    """Return the newest version and the change up to it; None without a table. If it is `seen`, no event is read."""
    opened = (open_newest or opening_once(config))()
    if opened is None:
        return None
    identity = identity_of(opened.manifest)
    if seen is not None and seen.identity == identity:
        return seen
    return _Seen(identity, change_up_to(opened, list(recorded_versions(instance, config, _EVENTS))))


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
        why_unseen: str | None = None
        try:
            seen = _look(context.instance, config, seen)
        except StoreError as error:
            if _freshness_of(config, seen).passed:
                raise  # the tick fails and names the store; the rows that were seen are not too old yet
            why_unseen = str(error)
        found = _freshness_of(config, seen, why_unseen).evaluation(names.head)
        last = newest_evaluation(context.instance, dg.AssetCheckKey(names.head, FRESH))
        is_told = last is not None and _result(last.evaluation) == _result(found)
        words = f"{'still' if is_told else 'reported as'} {'green' if found.passed else 'red'}: {found.description}"
        cursor = seen.encode() if seen else None
        return dg.SensorResult(asset_events=[] if is_told else [found], skip_reason=words, cursor=cursor)

    return fresh


def _result(evaluation: dg.AssetCheckEvaluation) -> tuple[bool, dg.AssetCheckSeverity]:
    """Return the result; a check that could not look at the table has neither of the others."""
    return evaluation.passed, evaluation.severity


def _freshness_of(config: DatasetConfig, seen: _Seen | None, why_unseen: str | None = None) -> Freshness:
    return Freshness(seen.change if seen else None, _limit(config), datetime.now(UTC), why_unseen)


def _limit(config: DatasetConfig) -> timedelta:
    hours = config.health.hours_without_version
    return timedelta.max if hours is None else timedelta(hours=hours)
